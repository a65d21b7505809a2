# role: repair
# problem: cvrp
# expect: any-failure
# why: numpy under a second name
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    m = np
    m.ndarray((5,))
    for customer in removed_customers:
        routes.append([customer])
    return routes
