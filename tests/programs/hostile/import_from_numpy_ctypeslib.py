# role: repair
# problem: cvrp
# expect: rejected
# why: the same door by name
# reason: ctypeslib
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    from numpy import ctypeslib
    ctypeslib.ctypes
    for customer in removed_customers:
        routes.append([customer])
    return routes
