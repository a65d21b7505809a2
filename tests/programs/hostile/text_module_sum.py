# role: repair
# problem: cvrp
# expect: any-failure
# why: a constant of fifteen hundred terms at module level
X = 1@REPEAT 1500 +1@


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    pass
    for customer in removed_customers:
        routes.append([customer])
    return routes
