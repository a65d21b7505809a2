# role: destroy
# problem: tsp
# expect: ok
# why: reductions along an axis
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    d = dist + np.diag(np.full(len(dist), np.inf))
    nearest = d.min(axis=1)
    order = np.argsort(nearest)[::-1]
    removed = order[: max(1, len(current_tour) // 6)].tolist()
    return [c for c in current_tour if c not in removed], removed
