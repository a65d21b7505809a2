# role: destroy
# problem: tsp
# expect: ok
# why: a block of the matrix by ix_
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    half = current_tour[: len(current_tour) // 2]
    block = dist[np.ix_(half, half)]
    central = half[int(np.argmin(block.sum(axis=1)))]
    row = dist[central]
    removed = np.array(half)[np.argsort(row[half])][:4].tolist()
    return [c for c in current_tour if c not in removed], removed
