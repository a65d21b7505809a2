# role: repair
# problem: tsp
# expect: any-failure
# why: numpy counts a time difference as an integer
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [np.timedelta64(x) for x in partial_tour + removed_nodes]
