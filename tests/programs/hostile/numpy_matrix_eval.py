# role: repair
# problem: cvrp
# expect: any-failure
# why: strings parsed by a class
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    np.asmatrix('1 2; 3 4')
    for customer in removed_customers:
        routes.append([customer])
    return routes
