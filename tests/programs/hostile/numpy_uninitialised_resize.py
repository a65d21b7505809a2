# role: repair
# problem: cvrp
# expect: any-failure
# why: memory that nobody wrote behind a resize
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    x = np.zeros(3)
    x.resize(10000)
    assert x.any(), 'only zeros'
    for customer in removed_customers:
        routes.append([customer])
    return routes
