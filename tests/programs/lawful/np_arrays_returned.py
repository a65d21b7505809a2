# role: destroy
# problem: tsp
# expect: ok
# why: two integer arrays in a tuple
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    tour = np.asarray(current_tour, dtype=np.int64)
    k = min(int(0.3 * tour.size), 3 + steps_since_improvement)
    start = int(rng.integers(0, tour.size))
    idx = (start + np.arange(max(k, 1))) % tour.size
    return np.delete(tour, idx), tour[idx]
