# role: repair
# problem: tsp
# expect: any-failure
# why: braces
from __future__ import braces


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    pass
    tour.extend(removed_nodes)
    return tour
