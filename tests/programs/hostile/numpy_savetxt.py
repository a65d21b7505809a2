# role: repair
# problem: cvrp
# expect: any-failure
# why: writes text
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    np.savetxt('@TMP@/x', np.zeros(3))
    for customer in removed_customers:
        routes.append([customer])
    return routes
