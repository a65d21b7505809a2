# role: repair
# problem: cvrp
# expect: crash
# why: a list inside a constant tuple
CALLS = ([],)


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    CALLS[0].append(1)
    for customer in removed_customers:
        routes.append([customer])
    return routes
