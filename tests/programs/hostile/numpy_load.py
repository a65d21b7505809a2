# role: destroy
# problem: tsp
# expect: any-failure
# why: reads a file, or a pickle
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.load('/proc/self/environ', allow_pickle=True)
    return current_tour[count:], current_tour[:count]
