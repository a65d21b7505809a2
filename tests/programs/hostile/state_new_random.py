# role: repair
# problem: cvrp
# expect: any-failure
# why: a generator seeded from the system
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    import random
    if random.Random().random() < 2:
        pass
    rng._random
    for customer in removed_customers:
        routes.append([customer])
    return routes
