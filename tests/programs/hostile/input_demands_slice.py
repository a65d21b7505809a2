# role: repair
# problem: cvrp
# expect: any-failure
# why: zeroes all demands, then packs one route
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    demands[:] = 0
    return [[c for r in partial_routes for c in r] + list(removed_customers)]
    for customer in removed_customers:
        routes.append([customer])
    return routes
