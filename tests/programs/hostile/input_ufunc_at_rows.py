# role: destroy
# problem: tsp
# expect: any-failure
# why: ufunc.at writes a list of rows through read-only
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.multiply.at(dist, [0, 1], 0.0)
    return current_tour[count:], current_tour[:count]
