# role: destroy
# problem: tsp
# expect: ok
# why: shapes, joins and sets of arrays
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    t = np.array(current_tour)
    n = t.size
    made = [np.concatenate((t, t)), np.stack([t, t]), np.hstack([t, t]), np.vstack([t, t]), np.column_stack([t, t]),
            np.tile(t, 2), np.repeat(t, 2), np.roll(t, 3), np.flip(t), np.pad(t, (1, 1), mode="wrap"), np.append(t, t),
            np.insert(t, 0, 5), np.delete(t, 0), np.split(t, [2, 4])[0], np.array_split(t, 3)[0], np.unique(t), np.union1d(t, t),
            np.intersect1d(t, t[:3]), np.setdiff1d(t, t[:3]), np.setxor1d(t, t[:3]), t,
            np.isin(t, t), np.where(t > 3, t, 0), np.select([t > 3], [t], 0), np.argwhere(t > 3), np.flatnonzero(t),
            np.expand_dims(t, 0), np.squeeze(t[None]), np.broadcast_to(t, (2, n)), np.meshgrid(t, t)[0], np.triu_indices(4)[0],
            np.tril(np.ones((3, 3))), np.eye(3), np.identity(2), np.diag([1, 2]), np.linspace(0, 1, 5), np.arange(0, 5, 2),
            np.full_like(t, 3), np.take(t, [0]), np.take_along_axis(t, np.argsort(t), axis=0), np.atleast_1d(3), np.mod(t, 3),
            np.cumsum(t), np.diff(t), np.outer(t, t), np.dot(t, t), np.einsum("i,i->", t, t), np.clip(t, 0, 5), np.lexsort((t, t)),
            np.searchsorted(np.sort(t), 3), np.partition(t, 2), np.argpartition(t, 2), np.ones_like(t), np.zeros_like(t),
            np.logical_and(t > 1, t < 5), np.minimum.reduce([t, t]), np.add.accumulate(t), np.add.outer(t, t), np.add.reduce(t)]
    assert len(made) > 50 and np.array_equal(np.sort(t), np.arange(n)) and np.allclose(t, t)
    counts, values = np.unique(t % 3, return_counts=True)
    removed = t[t % 3 == counts[np.argmin(values)]][:5]
    return [int(v) for v in t if v not in removed], removed.tolist()
