# role: repair
# problem: cvrp
# expect: rejected
# why: a module's dictionary
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    import math
    math.__dict__['calls'] = 1
    for customer in removed_customers:
        routes.append([customer])
    return routes
