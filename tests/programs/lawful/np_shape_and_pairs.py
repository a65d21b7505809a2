# role: destroy
# problem: tsp
# expect: ok
# why: dist.shape and pairs of indices
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    n = dist.shape[0]
    costs = np.empty(n)
    for pos in range(n):
        a, b, c = current_tour[pos - 1], current_tour[pos], current_tour[(pos + 1) % n]
        costs[pos] = dist[a, b] + dist[b, c] - dist[a, c]
    worst = np.argpartition(-costs, 4)[:5]
    removed = [current_tour[p] for p in worst]
    partial = [x for x in current_tour if x not in removed]
    return partial, removed
