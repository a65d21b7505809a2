# role: destroy
# problem: tsp
# expect: ok
# why: where, isin and boolean masks
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    tour = np.array(current_tour)
    centre = tour[rng.integers(len(tour))]
    radius = np.quantile(dist[centre], 0.2)
    near = np.where(dist[centre] <= radius)[0]
    near = near[:max(1, int(np.floor(0.35 * len(tour))))]
    keep = tour[~np.isin(tour, near)]
    return keep.tolist(), near.tolist()
