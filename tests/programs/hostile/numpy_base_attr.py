# role: destroy
# problem: cvrp
# expect: any-failure
# why: the array behind a view
import numpy as np


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    np.asarray(dist)[1:].base
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
