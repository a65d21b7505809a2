# role: repair
# problem: cvrp
# expect: rejected
# why: a refused statement after a type comment
# reason: os
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    x = 1  # type: ignore[x]
    import os
    for customer in removed_customers:
        routes.append([customer])
    return routes
