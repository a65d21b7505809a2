# role: destroy
# problem: tsp
# expect: any-failure
# why: reads text
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.loadtxt('/proc/self/status', dtype=str)
    return current_tour[count:], current_tour[:count]
