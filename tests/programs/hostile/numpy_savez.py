# role: repair
# problem: tsp
# expect: any-failure
# why: writes an archive
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.savez('@TMP@/x', np.zeros(3))
    tour.extend(removed_nodes)
    return tour
