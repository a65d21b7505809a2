# role: repair
# problem: tsp
# expect: any-failure
# why: puts into the distances
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.put(dist, [0], [9.0])
    tour.extend(removed_nodes)
    return tour
