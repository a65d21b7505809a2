# role: repair
# problem: tsp
# expect: any-failure
# why: a masked array is a subclass
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return np.ma.array(partial_tour + removed_nodes)
