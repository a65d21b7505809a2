# role: repair
# problem: cvrp
# expect: rejected
# why: deleting the builtins table
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    global __builtins__
    del __builtins__
    for customer in removed_customers:
        routes.append([customer])
    return routes
