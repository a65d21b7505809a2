# role: destroy
# problem: tsp
# expect: ok
# why: the containers of collections
from collections import Counter, OrderedDict, defaultdict, deque

def destroy(dist, current_tour, steps_since_improvement, rng):
    groups = defaultdict(list)
    for v in current_tour:
        groups[v % 4].append(v)
    sizes = Counter({k: len(g) for k, g in groups.items()})
    (label, _), = sizes.most_common(1)
    queue = deque(groups[label], maxlen=10)
    queue.rotate(steps_since_improvement)
    removed = []
    while queue and len(removed) < 4:
        removed.append(queue.popleft())
    nested = defaultdict(lambda: defaultdict(int))
    nested[1][2] += 1
    order = OrderedDict((v, True) for v in removed)
    return [c for c in current_tour if c not in order], list(order)
