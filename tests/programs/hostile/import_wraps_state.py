# role: repair
# problem: cvrp
# expect: any-failure
# why: keeps state on a function through a helper
import functools


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    def note():
        return steps_since_improvement
    functools.wraps(note)(repair)
    for customer in removed_customers:
        routes.append([customer])
    return routes
