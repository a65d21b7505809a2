# role: repair
# problem: tsp
# expect: any-failure
# why: the same under lib
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.lib.npyio.DataSource('@TMP@').open('x', 'w')
    tour.extend(removed_nodes)
    return tour
