# role: destroy
# problem: tsp
# expect: ok
# why: arrays of 32 bits
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    tour = np.array(current_tour, dtype=np.int32)
    keep = np.ones(tour.shape[0], dtype=np.bool_)
    keep[rng.permutation(tour.shape[0])[:4]] = False
    return tour[keep], tour[~keep]
