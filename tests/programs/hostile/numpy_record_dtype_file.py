# role: repair
# problem: cvrp
# expect: any-failure
# why: a method of a record array
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    np.rec.array([1]).tofile('@TMP@/x')
    for customer in removed_customers:
        routes.append([customer])
    return routes
