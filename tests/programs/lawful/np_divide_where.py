# role: destroy
# problem: tsp
# expect: ok
# why: a masked division into zeros
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    d = np.asarray(dist)
    out = np.divide(1.0, d, out=np.zeros_like(d), where=d != 0)
    removed = [int(v) for v in np.argsort(out.max(axis=0), kind="mergesort")[-4:]]
    return [v for v in current_tour if v not in removed], removed
