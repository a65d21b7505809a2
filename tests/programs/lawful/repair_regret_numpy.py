# role: repair
# problem: tsp
# expect: ok
# why: vectorised regret
import numpy as np

def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = np.array(partial_tour, dtype=np.int64)
    left = np.array(removed_nodes, dtype=np.int64)
    while left.size:
        nxt = np.roll(tour, -1)
        delta = dist[np.ix_(left, tour)] + dist[np.ix_(left, nxt)] - dist[tour, nxt][None, :]
        two = np.partition(delta, 1, axis=1)[:, :2]
        pick = int(np.argmax(two[:, 1] - two[:, 0]))
        pos = int(np.argmin(delta[pick]))
        tour = np.insert(tour, pos + 1, left[pick])
        left = np.delete(left, pick)
    return tour
