# role: repair
# problem: tsp
# expect: any-failure
# why: a structured array
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return np.array([(x,) for x in partial_tour + removed_nodes], dtype=[('a', 'i8')])
