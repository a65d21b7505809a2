# role: repair
# problem: cvrp
# expect: any-failure
# why: resizes the distances
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    dist.resize((2, 2))
    for customer in removed_customers:
        routes.append([customer])
    return routes
