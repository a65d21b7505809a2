# role: repair
# problem: tsp
# expect: ok
# why: every way to write what is read-only fails or writes a copy
import copy
import operator

import numpy as np


def doors(d, rng):
    yield lambda: np.put(d, [1], [5.0])
    yield lambda: np.place(d, d > 0, [5.0])
    yield lambda: np.putmask(d, d > 0, 5.0)
    yield lambda: np.copyto(d, 5.0)
    yield lambda: np.fill_diagonal(d, 5.0)
    yield lambda: np.put_along_axis(d, np.zeros((1, len(d)), dtype=int), 5.0, axis=0)
    yield lambda: np.take(d, [0, 1], axis=0, out=d[:2])
    yield lambda: np.clip(d, 5.0, 6.0, out=d)
    yield lambda: np.cumsum(d, axis=0, out=d)
    yield lambda: np.concatenate([d[:1], d[1:]], out=d)
    yield lambda: np.dot(d, d, out=d)
    yield lambda: np.einsum("ij,jk->ik", d, d, out=d)
    yield lambda: np.matmul(d, d, out=d)
    yield lambda: np.nan_to_num(d, copy=False)
    yield lambda: np.median(d, overwrite_input=True)
    yield lambda: np.percentile(d, 50, overwrite_input=True)
    yield lambda: np.median(d[0], overwrite_input=True)
    yield lambda: np.round(d, 0, out=d)
    yield lambda: np.mean(d, axis=0, out=d[0])
    yield lambda: np.compress([True, True], d, axis=0, out=d[:2])
    yield lambda: np.choose(np.zeros(len(d), dtype=int), d, out=d[0])
    yield lambda: np.sqrt(d, d)
    yield lambda: np.add.reduce(d, axis=0, out=d[0])
    yield lambda: np.multiply.outer(d[0], d[0], out=d)
    yield lambda: d.sort()
    yield lambda: d.partition(3)
    yield lambda: d.fill(5.0)
    yield lambda: d.put([0], [5.0])
    yield lambda: d.reshape(-1).fill(5.0)
    yield lambda: d.ravel().fill(5.0) if d.ravel() is d else None
    yield lambda: d.T.fill(5.0)
    yield lambda: d.diagonal().fill(5.0)
    yield lambda: d[0].fill(5.0)
    yield lambda: np.broadcast_to(d, (2, *d.shape)).fill(5.0)
    yield lambda: np.asarray(d).fill(5.0)
    yield lambda: np.ascontiguousarray(d).fill(5.0)
    yield lambda: np.atleast_2d(d).fill(5.0)
    yield lambda: np.transpose(d).fill(5.0)
    yield lambda: np.split(d, [1])[0].fill(5.0)
    yield lambda: np.diagonal(d).fill(5.0)
    yield lambda: np.expand_dims(d, 0).fill(5.0)
    yield lambda: np.array(d, copy=None).fill(5.0)
    yield lambda: operator.setitem(d, (0, 1), 5.0)
    yield lambda: operator.setitem(d.flat, 0, 5.0)
    yield lambda: operator.iadd(d, 5.0)
    yield lambda: operator.delitem(d, 0)
    yield lambda: rng.shuffle(d)
    yield lambda: rng.permuted(d, axis=1, out=d)
    yield lambda: rng.standard_normal(out=d)
    yield lambda: rng.standard_exponential(out=d)
    yield lambda: rng.standard_gamma(1.0, out=d)
    yield lambda: rng.random(out=d)


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    given = np.asarray(dist)
    before = given.tolist()
    given.shape
    for door in doors(given, rng):
        try:
            door()
        except (TypeError, ValueError, IndexError, AttributeError):
            pass
        assert given.tolist() == before, 'changed'
    assert dist.tolist() == before
    tour.extend(removed_nodes)
    return tour
