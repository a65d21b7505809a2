# role: repair
# problem: cvrp
# expect: any-failure
# why: lists of the host
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    np.lib.format.sys.exit()
    for customer in removed_customers:
        routes.append([customer])
    return routes
