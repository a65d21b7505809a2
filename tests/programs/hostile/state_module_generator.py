# role: repair
# problem: cvrp
# expect: rejected
# why: a generator expression at module level
CALLS = (x for x in range(10**9))


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    next(CALLS)
    for customer in removed_customers:
        routes.append([customer])
    return routes
