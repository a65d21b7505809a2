# role: repair
# problem: tsp
# expect: contained
# why: integers read as object pointers through void
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = (np.zeros(1, dtype='i8') + 4096).astype('V8').astype([('a', 'O')])
    assert str(x[0])
    tour.extend(removed_nodes)
    return tour
