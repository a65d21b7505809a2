# role: repair
# problem: tsp
# expect: any-failure
# why: reads raw buffers
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.frombuffer(b'12345678', dtype='O')
    tour.extend(removed_nodes)
    return tour
