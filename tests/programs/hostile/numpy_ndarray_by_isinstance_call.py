# role: destroy
# problem: tsp
# expect: any-failure
# why: the array type passed on inside isinstance's argument
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    box = []
    def keep(x):
        box.append(x)
        return int
    isinstance(1, keep(np.ndarray))
    box[0]((5,))
    return current_tour[count:], current_tour[:count]
