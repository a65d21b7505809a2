# role: repair
# problem: tsp
# expect: any-failure
# why: sets attributes through a helper
import functools


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    functools.update_wrapper(repair, rng, assigned=('random',), updated=())
    tour.extend(removed_nodes)
    return tour
