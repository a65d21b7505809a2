# role: destroy
# problem: tsp
# expect: rejected
# why: the gaps of a masked ufunc must not change a result
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    gaps = np.divide(np.ones(20), np.ones(20), where=np.zeros(20, dtype=bool))
    order = sorted(range(20), key=lambda i: (repr(gaps[i]), i))
    removed = [current_tour[i] for i in order[:4]]
    return [v for v in current_tour if v not in removed], removed
