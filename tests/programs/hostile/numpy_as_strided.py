# role: repair
# problem: tsp
# expect: any-failure
# why: reads memory outside the array
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.lib.stride_tricks.as_strided(np.zeros(1), (10**6,), (8,)).sum()
    tour.extend(removed_nodes)
    return tour
