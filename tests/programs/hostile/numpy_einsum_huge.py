# role: repair
# problem: cvrp
# expect: any-failure
# why: an einsum without end
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    np.einsum('ij,jk,kl,lm->im', *[np.ones((3000, 3000))] * 4)
    for customer in removed_customers:
        routes.append([customer])
    return routes
