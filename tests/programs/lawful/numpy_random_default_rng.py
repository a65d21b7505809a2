# role: destroy
# problem: tsp
# expect: ok
# why: the rollout's generator by NumPy's name
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    count = 1 + int(np.random.default_rng().integers(0, 5))
    return current_tour[count:], current_tour[:count]
