# role: repair
# problem: cvrp
# expect: any-failure
# why: the import function by name
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    __import__('os').mkdir('@TMP@/x')
    for customer in removed_customers:
        routes.append([customer])
    return routes
