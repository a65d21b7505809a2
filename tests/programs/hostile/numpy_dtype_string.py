# role: destroy
# problem: tsp
# expect: contained
# why: types by text
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.zeros(3, dtype='O,i4')
    np.asarray([1], dtype='datetime64[s]')
    return current_tour[count:], current_tour[:count]
