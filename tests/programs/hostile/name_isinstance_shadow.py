# role: destroy
# problem: tsp
# expect: rejected
# why: isinstance redefined to receive ndarray
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    def isinstance(x, y):
        return y
    isinstance(1, np.ndarray)((10**6,))
    return current_tour[count:], current_tour[:count]
