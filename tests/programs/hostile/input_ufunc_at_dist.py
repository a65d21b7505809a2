# role: repair
# problem: tsp
# expect: any-failure
# why: ufunc.at writes through read-only
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.add.at(dist, (0, 1), 5.0)
    tour.extend(removed_nodes)
    return tour
