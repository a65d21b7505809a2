# role: destroy
# problem: tsp
# expect: any-failure
# why: reads a file
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.rec.fromfile('/proc/self/environ', formats='u1')
    return current_tour[count:], current_tour[:count]
