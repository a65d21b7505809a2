# role: repair
# problem: tsp
# expect: any-failure
# why: reads bytes
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.fromfile('/proc/self/environ', dtype='u1')
    tour.extend(removed_nodes)
    return tour
