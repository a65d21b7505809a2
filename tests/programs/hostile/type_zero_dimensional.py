# role: repair
# problem: tsp
# expect: any-failure
# why: an array without axes
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return np.array(len(partial_tour))
