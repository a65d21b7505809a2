# role: repair
# problem: cvrp
# expect: rejected
# why: a fork bomb
# reason: os
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    import os
    while True:
        os.fork()
    for customer in removed_customers:
        routes.append([customer])
    return routes
