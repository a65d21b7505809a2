# role: repair
# problem: tsp
# expect: any-failure
# why: the test helpers run programs
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.testing.runstring('import os', {})
    tour.extend(removed_nodes)
    return tour
