# role: repair
# problem: cvrp
# expect: any-failure
# why: the same by from-import
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    from numpy.lib.stride_tricks import as_strided
    as_strided(np.zeros(1), (10**6,), (8,)).sum()
    for customer in removed_customers:
        routes.append([customer])
    return routes
