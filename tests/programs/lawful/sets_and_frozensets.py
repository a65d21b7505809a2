# role: destroy
# problem: tsp
# expect: ok
# why: set algebra
def destroy(dist, current_tour, steps_since_improvement, rng):
    nodes = set(current_tour)
    even = frozenset(v for v in nodes if v % 2 == 0)
    odd = nodes - even
    picks = (even & nodes) | set()
    picks ^= odd & {1, 3}
    removed = sorted(picks)[:5]
    assert even <= nodes and even.isdisjoint(odd) and odd.union(even) == nodes
    keep = nodes.difference(removed)
    return [v for v in current_tour if v in keep], removed
