# role: repair
# problem: tsp
# expect: ok
# why: a list of numpy integers
import numpy as np

def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = [np.int64(v) for v in partial_tour]
    for v in rng.permutation(removed_nodes):
        i = int(rng.integers(0, len(tour) + 1))
        tour.insert(i, v)
    return tour
