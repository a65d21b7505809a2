# role: repair
# problem: cvrp
# expect: any-failure
# why: permutes the distances in place
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    rng.permuted(np.asarray(dist), axis=1, out=np.asarray(dist))
    for customer in removed_customers:
        routes.append([customer])
    return routes
