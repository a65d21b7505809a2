# role: destroy
# problem: cvrp
# expect: any-failure
# why: the array type out of a comprehension inside isinstance
import numpy as np


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    box = []
    isinstance(1, tuple([x for x in [np.ndarray] if not box.append(x)]))
    box[0]((5,))
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
