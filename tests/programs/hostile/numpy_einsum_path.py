# role: destroy
# problem: tsp
# expect: any-failure
# why: sub-module by attribute
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.linalg.linalg.functools.reduce
    return current_tour[count:], current_tour[:count]
