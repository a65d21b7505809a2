# role: destroy
# problem: tsp
# expect: any-failure
# why: the machine's description
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    np.show_config()
    return current_tour[count:], current_tour[:count]
