# role: destroy
# problem: tsp
# expect: any-failure
# why: writes through a reshaped view
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.asarray(dist)
    dist.reshape(-1)[0] = 5.0
    return current_tour[count:], current_tour[:count]
