# role: repair
# problem: cvrp
# expect: crash
# why: a failed assertion with a huge message
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    assert False, 'x' * 10**7
    for customer in removed_customers:
        routes.append([customer])
    return routes
