# role: destroy
# problem: tsp
# expect: any-failure
# why: reads the caller's frame
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    X = np.zeros((2, 2))
    np.bmat('X,X')
    return current_tour[count:], current_tour[:count]
