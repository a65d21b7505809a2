# role: repair
# problem: tsp
# expect: ok
# why: noise and blinks
import numpy as np

def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    scale = 0.05 * float(np.max(np.asarray(dist)))
    tour = list(partial_tour)
    for v in sorted(removed_nodes, key=lambda u: -np.mean(dist[u])):
        t = np.array(tour)
        delta = dist[t, v] + dist[v, np.roll(t, -1)] - dist[t, np.roll(t, -1)]
        delta = delta + scale * rng.standard_normal(len(tour)) * (rng.random(len(tour)) < 0.2)
        tour.insert(int(delta.argmin()) + 1, v)
    return tour
