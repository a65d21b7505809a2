# role: repair
# problem: cvrp
# expect: timeout
# why: an endless loop in a finally
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    try:
        raise ValueError
    finally:
        while True:
            pass
    for customer in removed_customers:
        routes.append([customer])
    return routes
