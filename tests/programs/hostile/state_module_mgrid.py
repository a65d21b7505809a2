# role: destroy
# problem: tsp
# expect: any-failure
# why: an array at module level without a call
import numpy as np

CALLS = np.mgrid[(range(0, 3),)]


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    CALLS[0, 0] += 1
    count = 1 + int(CALLS[0, 0]) % 3
    return current_tour[count:], current_tour[:count]
