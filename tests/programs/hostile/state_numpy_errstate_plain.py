# role: repair
# problem: cvrp
# expect: contained
# why: numpy's error mode left changed by a suspended generator
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    def hold():
        with np.errstate(all='raise'):
            yield box
    box = []
    box.append(hold())
    next(box[0])
    for customer in removed_customers:
        routes.append([customer])
    return routes
