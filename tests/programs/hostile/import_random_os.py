# role: repair
# problem: cvrp
# expect: any-failure
# why: the random module's own imports
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    from random import _os
    _os.mkdir('@TMP@/x')
    for customer in removed_customers:
        routes.append([customer])
    return routes
