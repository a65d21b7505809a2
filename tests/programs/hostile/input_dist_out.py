# role: destroy
# problem: tsp
# expect: any-failure
# why: the distances as an output
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.add(dist, 1.0, out=dist)
    return current_tour[count:], current_tour[:count]
