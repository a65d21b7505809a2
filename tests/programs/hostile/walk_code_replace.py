# role: repair
# problem: cvrp
# expect: rejected
# why: a function's code
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    repair.__code__ = repair.__code__.replace(co_consts=())
    for customer in removed_customers:
        routes.append([customer])
    return routes
