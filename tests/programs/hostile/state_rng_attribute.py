# role: repair
# problem: cvrp
# expect: rejected
# why: state on the generator
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    rng.calls = 1
    for customer in removed_customers:
        routes.append([customer])
    return routes
