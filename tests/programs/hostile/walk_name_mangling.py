# role: repair
# problem: cvrp
# expect: rejected
# why: a dunder parameter name
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    def f(__class__):
        return __class__
    f(routes)
    for customer in removed_customers:
        routes.append([customer])
    return routes
