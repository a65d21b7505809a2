# role: repair
# problem: cvrp
# expect: rejected
# why: a global statement
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    global calls
    calls = 1
    for customer in removed_customers:
        routes.append([customer])
    return routes
