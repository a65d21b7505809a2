# role: destroy
# problem: tsp
# expect: ok
# why: unsigned arrays
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    tour = np.array(current_tour, dtype=np.uint16)
    return tuple(tour[3:]), list(tour[:3])
