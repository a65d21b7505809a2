# role: repair
# problem: tsp
# expect: any-failure
# why: a float array
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return np.array(partial_tour + removed_nodes, dtype=float)
