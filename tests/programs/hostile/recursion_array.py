# role: repair
# problem: tsp
# expect: any-failure
# why: an array of a deeply nested list
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    a = 1
    for _ in range(10**5):
        a = [a]
    np.array(a)
    tour.extend(removed_nodes)
    return tour
