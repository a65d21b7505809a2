# role: destroy
# problem: tsp
# expect: ok
# why: arrays of 8 bits
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    tour = np.array(current_tour, dtype=np.int8)
    return tour[3:], tour[:3]
