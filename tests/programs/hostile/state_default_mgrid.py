# role: repair
# problem: tsp
# expect: any-failure
# why: an array as a default argument without a call
import numpy as np


def note(calls=np.mgrid[(range(0, 3),)]):
    calls[0, 0] += 1
    return calls[0, 0]


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    note()
    tour.extend(removed_nodes)
    return tour
