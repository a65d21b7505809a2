# role: repair
# problem: cvrp
# expect: memory
# why: an outer product of ten billion
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    x = np.outer(np.ones(10**5), np.ones(10**5))
    for customer in removed_customers:
        routes.append([customer])
    return routes
