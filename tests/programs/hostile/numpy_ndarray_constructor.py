# role: repair
# problem: cvrp
# expect: any-failure
# why: an array over chosen memory
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    np.ndarray((10**6,), strides=(8,), buffer=np.zeros(1)).sum()
    for customer in removed_customers:
        routes.append([customer])
    return routes
