# role: repair
# problem: cvrp
# expect: any-failure
# why: an array's address
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    np.zeros(3).ctypes.data
    for customer in removed_customers:
        routes.append([customer])
    return routes
