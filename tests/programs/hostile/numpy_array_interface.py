# role: repair
# problem: tsp
# expect: any-failure
# why: an array's address
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.asarray(dist).__array_interface__
    tour.extend(removed_nodes)
    return tour
