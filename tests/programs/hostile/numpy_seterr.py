# role: repair
# problem: tsp
# expect: any-failure
# why: a global setting
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.seterr(all='raise')
    tour.extend(removed_nodes)
    return tour
