# role: destroy
# problem: tsp
# expect: ok
# why: isinstance with numpy's types
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    row = dist[0]
    if isinstance(row, np.ndarray) or isinstance(dist, (list, tuple, np.ndarray)):
        k = 2
    else:
        k = 2
    assert isinstance(np.int64(3), np.integer) and not isinstance(3.0, (int, np.integer))
    return current_tour[k:], current_tour[:k]
