# role: repair
# problem: tsp
# expect: ok
# why: np.inf and scalar reads of an array
import numpy as np

def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = partial_tour.copy()
    for v in removed_nodes:
        best_cost = np.inf
        best_pos = 0
        for pos in range(len(tour) + 1):
            prev = tour[pos - 1]
            nxt = tour[pos % len(tour)]
            cost = dist[prev, v] + dist[v, nxt] - dist[prev, nxt]
            if cost < best_cost:
                best_cost, best_pos = cost, pos
        tour.insert(best_pos, v)
    return tour
