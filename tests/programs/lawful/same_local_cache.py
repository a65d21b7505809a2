# role: repair
# problem: tsp
# expect: ok
# why: a cache local to the call
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    from functools import lru_cache
    cached = lru_cache(maxsize=None)(lambda v: dist[v][0])
    [cached(v) for v in tour]
    tour.extend(removed_nodes)
    return tour
