# role: repair
# problem: cvrp
# expect: timeout
# why: an endless sort key
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    sorted([1, 2], key=lambda x: sum(iter(int, 1)))
    for customer in removed_customers:
        routes.append([customer])
    return routes
