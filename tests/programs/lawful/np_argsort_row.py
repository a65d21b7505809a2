# role: destroy
# problem: tsp
# expect: ok
# why: argsort on a row
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    k = max(1, int(0.25 * n))
    seed = rng.choice(current_tour)
    order = np.argsort(dist[seed])
    removed = [int(x) for x in order[:k]]
    chosen = set(removed)
    return [x for x in current_tour if x not in chosen], removed
