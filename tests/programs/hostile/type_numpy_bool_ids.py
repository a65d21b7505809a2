# role: repair
# problem: tsp
# expect: any-failure
# why: numpy's True for node 1
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [np.bool_(True) if x == 1 else x for x in partial_tour + removed_nodes]
