# role: destroy
# problem: tsp
# expect: any-failure
# why: an uninitialised array made in an annotation
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    box = []
    x: box.append(np.ndarray((5,))) = 1
    def f(y: box.append(np.ndarray((5,)))):
        return y
    assert box, 'nothing was made'
    return current_tour[count:], current_tour[:count]
