# role: destroy
# problem: cvrp
# expect: any-failure
# why: an integer read as a pointer by the array constructor
import numpy as np


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    isinstance(1, (make := np.ndarray))
    x = make((1,), dtype='O', buffer=np.array([4096]))
    repr(x)
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
