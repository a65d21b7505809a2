# role: repair
# problem: tsp
# expect: any-failure
# why: maps a file under lib
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.lib.format.open_memmap('@TMP@/x', mode='w+', shape=(3,))
    tour.extend(removed_nodes)
    return tour
