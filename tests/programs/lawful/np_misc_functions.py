# role: destroy
# problem: tsp
# expect: ok
# why: many functions of numpy
import numpy as np
from numpy import array, zeros

def destroy(dist, current_tour, steps_since_improvement, rng):
    d = np.array(dist, dtype=np.float64)
    t = array(current_tour, dtype=int)
    z = zeros((3, 3)) + np.ones_like(np.zeros((3, 3))) - np.full((3, 3), 1.0)
    m, s, med = np.mean(d), np.std(d), np.median(d)
    score = np.maximum(d.sum(axis=0), 0) + np.minimum(d.max(axis=1), np.inf) - np.abs(d.mean(axis=1) - m)
    rank = np.lexsort((np.arange(score.size), -score))
    rest = np.setdiff1d(np.arange(len(t)), rank[:3])
    both = np.concatenate([rank[:3], rest])
    assert np.unique(both).size == t.size and np.isfinite(score).all() and not np.isnan(s)
    assert np.any(z == 0) and np.all(z == 0) and np.argmax(score) >= 0 and np.count_nonzero(score) > 0
    assert float(np.percentile(d, 50)) == float(med) or True
    stacked = np.vstack([rank, rank]).T.reshape(-1, 2).astype(np.int64)
    flat = stacked.ravel()[::2]
    assert (flat == rank).all() and np.dot(score, score) > 0 and np.sqrt(4.0) == 2.0 and np.log(np.exp(1.0)) > 0.9
    removed = rank[:3].tolist()
    return [c for c in current_tour if c not in removed], removed
