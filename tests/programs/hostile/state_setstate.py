# role: repair
# problem: cvrp
# expect: any-failure
# why: writing the generator's state
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    rng.setstate((3, (0,) * 625, None))
    for customer in removed_customers:
        routes.append([customer])
    return routes
