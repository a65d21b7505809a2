# role: repair
# problem: tsp
# expect: any-failure
# why: numpy floats in a list
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [np.float64(x) for x in partial_tour + removed_nodes]
