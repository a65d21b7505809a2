# role: repair
# problem: cvrp
# expect: any-failure
# why: the array type out of a variable's annotation
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    x: (make := np.ndarray) = 1
    make((5,))
    for customer in removed_customers:
        routes.append([customer])
    return routes
