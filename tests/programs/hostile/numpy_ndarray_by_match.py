# role: destroy
# problem: tsp
# expect: any-failure
# why: the array type out of a value pattern
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    match 1:
        case np.ndarray:
            pass
    (lambda: np.ndarray)()((5,))
    return current_tour[count:], current_tour[:count]
