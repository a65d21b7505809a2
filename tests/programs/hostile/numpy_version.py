# role: repair
# problem: tsp
# expect: any-failure
# why: facts of the host
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.version.git_revision
    tour.extend(removed_nodes)
    return tour
