# role: repair
# problem: cvrp
# expect: any-failure
# why: fills the distances
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    dist.fill(0.0)
    for customer in removed_customers:
        routes.append([customer])
    return routes
