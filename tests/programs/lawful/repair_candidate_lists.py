# role: repair
# problem: tsp
# expect: ok
# why: neighbour lists from argpartition
import numpy as np

def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    for v in removed_nodes:
        row = np.asarray(dist[v])
        inside = np.array(tour)
        k = min(5, inside.size - 1)
        near = inside[np.argpartition(row[inside], k)[: k + 1]]
        spots = sorted({tour.index(int(u)) for u in near} | {(tour.index(int(u)) + 1) % len(tour) for u in near})
        best = min(spots, key=lambda i: dist[tour[i - 1]][v] + dist[v][tour[i]] - dist[tour[i - 1]][tour[i]])
        tour.insert(best, v)
    return tour
