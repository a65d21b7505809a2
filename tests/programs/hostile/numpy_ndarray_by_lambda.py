# role: repair
# problem: tsp
# expect: any-failure
# why: the array type out of a lambda inside isinstance
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    box = []
    isinstance(1, (lambda x=np.ndarray: box.append(x) or int)())
    box[0]((5,))
    tour.extend(removed_nodes)
    return tour
