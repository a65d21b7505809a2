# role: repair
# problem: cvrp
# expect: any-failure
# why: an array at module level without a call, inside a tuple
import numpy as np

CALLS = np.ogrid[(range(0, 3), range(0, 3))]


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    CALLS[0][0] += 1
    for customer in removed_customers:
        routes.append([customer])
    return routes
