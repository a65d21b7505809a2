# role: destroy
# problem: tsp
# expect: ok
# why: a heap of tuples
import heapq

def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    heap = []
    for i, node in enumerate(current_tour):
        prev, nxt = current_tour[i - 1], current_tour[(i + 1) % n]
        heapq.heappush(heap, (-(dist[prev][node] + dist[node][nxt] - dist[prev][nxt]), node))
    removed = [heapq.heappop(heap)[1] for _ in range(max(1, n // 5))]
    largest = heapq.nlargest(1, heap)
    assert largest
    gone = frozenset(removed)
    return [x for x in current_tour if x not in gone], removed
