# role: repair
# problem: cvrp
# expect: any-failure
# why: a dictionary bound by a walrus in a return annotation
def helper() -> (CALLS := {}):
    return 1


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    CALLS[len(CALLS)] = 1
    for customer in removed_customers:
        routes.append([customer])
    return routes
