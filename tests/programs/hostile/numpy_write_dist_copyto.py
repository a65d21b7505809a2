# role: repair
# problem: tsp
# expect: contained
# why: writes the distances
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.copyto(np.asarray(dist), 1.0)
    tour.extend(removed_nodes)
    return tour
