# role: destroy
# problem: tsp
# expect: ok
# why: methods of arrays
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    a = np.asarray(dist, dtype=float)
    t = np.array(current_tour)
    checks = [a.sum(), a.mean(), a.std(), a.var(), a.max(), a.min(), a.prod(), a.trace(), a.any(), a.all(),
              a.cumsum().size, a.cumprod().size, a.argmax(), a.argmin(), a.argsort(axis=1).shape[0], 0.0,
              a.clip(0.1, 0.2).max(), a.round(2).min(), a.ravel().size, a.flatten().size, a.T.shape[0],
              a.transpose().ndim, a.swapaxes(0, 1).size, a.diagonal().sum(), a.nonzero()[0].size, a.repeat(2).size,
              a.take([0, 1]).size, a.reshape(-1).size, a.copy().size, a.astype(np.int64).sum(), 0,
              t.tolist()[0], t.item(0), a.squeeze().size, a.dot(a).size, np.sort(t)[0], a.argpartition(2, axis=1).size, a.compress([True, False], axis=0).size]
    own = t.copy()
    own.sort()
    own.fill(0)
    assert len(checks) == 38 and own.sum() == 0
    removed = t[a[t[0]][t].argsort()[:4]]
    return t[~np.isin(t, removed)], removed
