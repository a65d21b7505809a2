# role: repair
# problem: cvrp
# expect: rejected
# why: raising its own limits
# reason: resource
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))
    for customer in removed_customers:
        routes.append([customer])
    return routes
