# role: repair
# problem: cvrp
# expect: rejected
# why: what a bound builtin is bound to
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    print.__self__.open('@TMP@/x', 'w')
    for customer in removed_customers:
        routes.append([customer])
    return routes
