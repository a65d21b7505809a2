# role: destroy
# problem: tsp
# expect: ok
# why: fancy indexing with two lists
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    d = np.asarray(dist)
    t = np.array(current_tour)
    gaps = d[t, np.roll(t, -1)]
    p = gaps / gaps.sum()
    idx = rng.choice(t.size, size=5, replace=False, p=p)
    gone = set(t[idx].tolist())
    return [v for v in current_tour if v not in gone], sorted(gone)
