# role: destroy
# problem: tsp
# expect: ok
# why: broadcast indexing and a write to an own copy
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    d = dist.copy()
    np.fill_diagonal(d, np.inf)
    t = np.asarray(current_tour)
    sub = d[t[:, None], t[None, :]]
    pos = np.argmin(sub, axis=1)
    i = int(np.argmax(sub[np.arange(t.size), pos]))
    removed = [int(t[i]), int(t[pos[i]])]
    return [c for c in current_tour if c not in removed], removed
