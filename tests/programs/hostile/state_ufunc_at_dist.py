# role: destroy
# problem: cvrp
# expect: any-failure
# why: the diagonal of the distances as a counter
import numpy as np


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    np.add.at(dist, (0, 0), 1.0)
    count = 1 + int(dist[0, 0]) % 3
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
