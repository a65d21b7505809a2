# role: repair
# problem: cvrp
# expect: any-failure
# why: a product as a list
import itertools


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    x = list(itertools.product(range(100), repeat=6))
    for customer in removed_customers:
        routes.append([customer])
    return routes
