# role: repair
# problem: tsp
# expect: memory
# why: an array that is written
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = np.ones(10**9)
    tour.extend(removed_nodes)
    return tour
