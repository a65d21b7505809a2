# role: repair
# problem: cvrp
# expect: contained
# why: writes the distances by out=
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    d = np.asarray(dist)
    np.add(d, 1.0, out=d)
    for customer in removed_customers:
        routes.append([customer])
    return routes
