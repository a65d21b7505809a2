# role: repair
# problem: tsp
# expect: any-failure
# why: an array of time differences
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return np.array(partial_tour + removed_nodes, dtype='m8[s]')
