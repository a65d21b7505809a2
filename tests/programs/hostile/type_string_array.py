# role: repair
# problem: tsp
# expect: any-failure
# why: an array of texts
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return np.array([str(x) for x in partial_tour + removed_nodes])
