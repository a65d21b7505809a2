# role: destroy
# problem: tsp
# expect: contained
# why: sorts the distances in place
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    d = np.asarray(dist)
    d.sort()
    return current_tour[count:], current_tour[:count]
