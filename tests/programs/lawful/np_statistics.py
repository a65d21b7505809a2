# role: destroy
# problem: cvrp
# expect: ok
# why: statistics of numpy
import numpy as np

def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    d = np.asarray(dist)
    q = np.asarray(demands)
    stats = [np.mean(d), np.median(d), np.std(d), np.var(d), np.percentile(d, 30), np.quantile(d, [0.1, 0.9])[0],
             np.average(d[0], weights=q), np.nanmean(d), np.nanmedian(d), np.nanmax(d), np.cov(d[0], d[1])[0, 0],
             np.corrcoef(d[0], d[1])[0, 1], np.histogram(d, bins=5)[0][0], np.bincount(q)[0], np.digitize([0.3], [0.1, 0.5])[0],
             np.ptp(d), np.nanquantile(d, 0.5), np.interp(0.5, [0, 1], [2, 3]), np.convolve([1, 2], [1, 1])[0], np.gradient([1.0, 2.0, 4.0])[0]]
    assert np.isfinite(np.array(stats, dtype=float)).all()
    loads = np.array([q[np.array(r)].sum() for r in current_routes])
    i = int(np.argmax(loads >= np.percentile(loads, 50)))
    removed = list(current_routes[i])[:3]
    return [[c for c in r if c not in removed] for r in current_routes], removed
