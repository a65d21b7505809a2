# role: destroy
# problem: tsp
# expect: memory
# why: memory in cycles, which no collector frees while a call runs (never written, so in no time)
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    for _ in range(3000):
        x = [np.zeros(10**6)]
        x.append(x)
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
