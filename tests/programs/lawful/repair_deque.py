# role: repair
# problem: tsp
# expect: ok
# why: deques and counters inside, a list out
from collections import deque

def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    ring = deque(partial_tour)
    for v in removed_nodes:
        steps = 0
        while dist[ring[-1]][v] > dist[ring[0]][v] and steps < len(ring):
            ring.rotate(-1)
            steps += 1
        ring.append(v)
    return list(ring)
