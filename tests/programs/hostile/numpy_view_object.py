# role: destroy
# problem: tsp
# expect: any-failure
# why: reinterprets integers as pointers
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.array([4096], dtype='i8').view('O')[0]
    return current_tour[count:], current_tour[:count]
