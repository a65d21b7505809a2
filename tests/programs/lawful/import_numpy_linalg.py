# role: destroy
# problem: tsp
# expect: ok
# why: parts of numpy's linear algebra
import numpy as np
from numpy.linalg import norm
import numpy.linalg as la

def destroy(dist, current_tour, steps_since_improvement, rng):
    rows = np.asarray(dist)
    lengths = [norm(rows[v]) for v in current_tour]
    assert abs(np.linalg.norm(rows[0]) - la.norm(rows[0])) < 1e-12
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])[:4]
    removed = [current_tour[i] for i in order]
    return [v for v in current_tour if v not in removed], removed
