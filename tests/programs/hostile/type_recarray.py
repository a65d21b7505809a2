# role: repair
# problem: tsp
# expect: any-failure
# why: a record array is a subclass
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return np.rec.array(partial_tour + removed_nodes)
