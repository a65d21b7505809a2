# role: repair
# problem: tsp
# expect: any-failure
# why: small integers that wrap
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [np.int8(x + 50) for x in partial_tour + removed_nodes]
