# role: repair
# problem: tsp
# expect: any-failure
# why: a numpy function's dispatcher
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.sum.__array_function__
    tour.extend(removed_nodes)
    return tour
