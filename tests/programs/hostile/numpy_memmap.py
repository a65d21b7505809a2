# role: destroy
# problem: tsp
# expect: any-failure
# why: maps a file
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.memmap('@TMP@/x', shape=(3,), mode='w+')
    return current_tour[count:], current_tour[:count]
