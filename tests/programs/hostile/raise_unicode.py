# role: repair
# problem: cvrp
# expect: crash
# why: characters outside ASCII in the message
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    raise ValueError('\U0001f4a5' * 1000 + '\u202e')
    for customer in removed_customers:
        routes.append([customer])
    return routes
