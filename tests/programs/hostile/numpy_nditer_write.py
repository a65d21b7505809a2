# role: repair
# problem: tsp
# expect: contained
# why: a writing iterator over the distances
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    for x in np.nditer(np.asarray(dist), op_flags=['readwrite']):
        x[...] = 1.0
    tour.extend(removed_nodes)
    return tour
