# role: repair
# problem: tsp
# expect: contained
# why: global random state
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.random.seed(0)
    tour.extend(removed_nodes)
    return tour
