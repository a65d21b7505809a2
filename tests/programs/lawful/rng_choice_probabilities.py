# role: destroy
# problem: tsp
# expect: ok
# why: choice of an array with probabilities
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    arr = np.array(current_tour)
    w = np.exp(-np.arange(arr.size) / 5.0)
    seed = rng.choice(arr, p=w / w.sum())
    pos = current_tour.index(seed)
    k = 3
    removed = [current_tour[(pos + j) % len(current_tour)] for j in range(k)]
    return [c for c in current_tour if c not in removed], removed
