# role: destroy
# problem: tsp
# expect: contained
# why: memory that nobody wrote where a ufunc is masked
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    y = np.arange(1.0, 21.0) + 0.5
    y = None
    x = np.divide(np.ones(20), np.ones(20), where=np.zeros(20, dtype=bool))
    assert np.any(x), 'only zeros'
    return current_tour[count:], current_tour[:count]
