# role: repair
# problem: cvrp
# expect: any-failure
# why: the builtins table by name
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    __builtins__['open']('@TMP@/x', 'w')
    for customer in removed_customers:
        routes.append([customer])
    return routes
