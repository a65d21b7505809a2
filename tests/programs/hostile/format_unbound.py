# role: repair
# problem: cvrp
# expect: rejected
# why: the unbound method
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    list(map(str.format, ['{0.__class__}'], [routes]))
    for customer in removed_customers:
        routes.append([customer])
    return routes
