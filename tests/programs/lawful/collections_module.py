# role: destroy
# problem: tsp
# expect: ok
# why: collections as a module
import collections

def destroy(dist, current_tour, steps_since_improvement, rng):
    seen = collections.deque(maxlen=3)
    count = collections.Counter()
    for v in current_tour:
        seen.append(v)
        count[v] += 1
        count.update([v])
    removed = list(seen)
    return [c for c in current_tour if c not in removed], removed
