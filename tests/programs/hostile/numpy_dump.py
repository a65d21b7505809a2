# role: repair
# problem: cvrp
# expect: any-failure
# why: pickles to a file
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    np.zeros(3).dump('@TMP@/x')
    for customer in removed_customers:
        routes.append([customer])
    return routes
