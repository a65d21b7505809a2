# role: repair
# problem: tsp
# expect: any-failure
# why: unsigned integers past the signed range
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    t = np.array(partial_tour + removed_nodes, dtype=np.uint64)
    t[0] = 2**64 - 1
    return t
