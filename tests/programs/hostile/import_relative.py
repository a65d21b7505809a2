# role: repair
# problem: tsp
# expect: rejected
# why: a relative import
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    from . import os
    tour.extend(removed_nodes)
    return tour
