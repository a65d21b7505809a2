# role: repair
# problem: cvrp
# expect: any-failure
# why: a power of a huge integer
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    pow(3, 10**9)
    for customer in removed_customers:
        routes.append([customer])
    return routes
