# role: repair
# problem: tsp
# expect: ok
# why: a lazily updated heap
import heapq
import math

def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = partial_tour[:]

    def best_position(node):
        best = (math.inf, -1)
        for i, (a, b) in enumerate(zip(tour, tour[1:] + tour[:1])):
            best = min(best, (dist[a][node] + dist[node][b] - dist[a][b], i + 1))
        return best

    heap = [(best_position(v)[0], v) for v in removed_nodes]
    heapq.heapify(heap)
    while heap:
        _, v = heapq.heappop(heap)
        cost, where = best_position(v)
        if heap and cost > heap[0][0] + 1e-12 and rng.random() < 0.5:
            heapq.heappush(heap, (cost, v))
            continue
        tour.insert(where, v)
    return tour
