# role: destroy
# problem: tsp
# expect: ok
# why: bisect, operator and copy
import bisect
import copy
from bisect import bisect_left, insort
from operator import add, itemgetter, mul

def destroy(dist, current_tour, steps_since_improvement, rng):
    scored = [(sum(dist[v]), v) for v in current_tour]
    scored.sort(key=itemgetter(0, 1))
    keys = list(map(itemgetter(0), scored))
    cut = bisect.bisect_right(keys, keys[-1] * 0.9)
    insort(keys, add(keys[0], mul(0.5, keys[1])))
    where = bisect_left(keys, keys[3])
    shallow, deep = copy.copy(current_tour), copy.deepcopy([current_tour, {1: scored}])
    removed = [v for _, v in scored[cut:]][:5] or [scored[-1][1]]
    partial = [c for c in shallow if c not in removed]
    assert deep[0] == current_tour and deep[0] is not current_tour and where >= 0
    return partial, removed
