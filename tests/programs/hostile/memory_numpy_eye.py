# role: destroy
# problem: tsp
# expect: memory
# why: an identity matrix of eighty gigabytes
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = np.eye(10**5)
    return current_tour[count:], current_tour[:count]
