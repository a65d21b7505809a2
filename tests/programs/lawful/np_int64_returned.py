# role: destroy
# problem: tsp
# expect: ok
# why: numpy integers in both lists
import numpy as np

def destroy(distance_matrix, current_solution, steps_since_improvement, rng):
    tour = np.array(current_solution)
    idx = rng.choice(len(tour), size=max(1, len(tour) // 4), replace=False)
    removed = list(tour[idx])
    mask = np.ones(len(tour), dtype=bool)
    mask[idx] = False
    partial = list(tour[mask])
    return partial, removed
