# role: destroy
# problem: tsp
# expect: ok
# why: normal, random(size) and integers(size=)
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    noise = rng.normal(0.0, 1.0, n) + rng.random(n) + rng.uniform(0, 1, size=n)
    shift = int(rng.integers(low=0, high=n, size=3).sum()) % n
    order = np.argsort(np.roll(noise, shift))
    removed = [current_tour[i] for i in order[:4]]
    return [x for x in current_tour if x not in removed], removed
