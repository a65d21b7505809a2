# role: destroy
# problem: tsp
# expect: any-failure
# why: a decomposition without end
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.linalg.svd(np.ones((3000, 3000)))
    return current_tour[count:], current_tour[:count]
