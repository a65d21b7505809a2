# role: repair
# problem: cvrp
# expect: rejected
# why: an array at module level
import numpy as np
CALLS = np.zeros(1)


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    CALLS[0] += 1
    for customer in removed_customers:
        routes.append([customer])
    return routes
