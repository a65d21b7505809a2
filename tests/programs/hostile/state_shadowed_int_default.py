# role: repair
# problem: cvrp
# expect: any-failure
# why: the same in a default argument
from collections import Counter as int


def def_(x, calls=int()):
    calls.update([x])
    return calls


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    def_(1)
    for customer in removed_customers:
        routes.append([customer])
    return routes
