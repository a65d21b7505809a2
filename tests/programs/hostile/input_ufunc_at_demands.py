# role: repair
# problem: cvrp
# expect: any-failure
# why: ufunc.at empties the demands
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    np.multiply.at(demands, list(range(len(demands))), 0)
    for customer in removed_customers:
        routes.append([customer])
    return routes
