# role: repair
# problem: tsp
# expect: rejected
# why: an iterator at module level
import itertools
CALLS = itertools.count()


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    next(CALLS)
    tour.extend(removed_nodes)
    return tour
