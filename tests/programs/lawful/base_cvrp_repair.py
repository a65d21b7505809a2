# role: repair
# problem: cvrp
# expect: ok
# why: the plain program that many others are built on
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    pass
    for customer in removed_customers:
        routes.append([customer])
    return routes
