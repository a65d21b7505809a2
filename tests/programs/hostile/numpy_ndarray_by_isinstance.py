# role: repair
# problem: tsp
# expect: any-failure
# why: the array type out of isinstance's argument
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    isinstance(1, (make := np.ndarray))
    make((5,))
    tour.extend(removed_nodes)
    return tour
