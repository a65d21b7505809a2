# role: repair
# problem: cvrp
# expect: rejected
# why: builtins as a module
# reason: builtins
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    import builtins
    builtins.open('@TMP@/x', 'w')
    for customer in removed_customers:
        routes.append([customer])
    return routes
