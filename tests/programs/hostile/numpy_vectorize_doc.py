# role: repair
# problem: tsp
# expect: any-failure
# why: a class of numpy
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.vectorize(len).pyfunc.__self__
    tour.extend(removed_nodes)
    return tour
