# role: repair
# problem: cvrp
# expect: contained
# why: a print to a file-like of its own
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    print('x', file=rng)
    for customer in removed_customers:
        routes.append([customer])
    return routes
