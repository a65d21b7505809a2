# role: destroy
# problem: tsp
# expect: ok
# why: numpy.errstate around a division
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    d = np.asarray(dist)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(d > 0, 1.0 / d, 0.0)
    removed = np.argsort(-inverse.sum(axis=1), kind="stable")[:4].tolist()
    return [v for v in current_tour if v not in removed], removed
