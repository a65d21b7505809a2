# role: repair
# problem: tsp
# expect: any-failure
# why: matrix class subclassing ndarray
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.matrix('1 2').A1.base
    tour.extend(removed_nodes)
    return tour
