# role: repair
# problem: cvrp
# expect: any-failure
# why: a chain of getattr
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    import functools
    functools.reduce(getattr, ['__class__', '__base__'], routes)
    for customer in removed_customers:
        routes.append([customer])
    return routes
