# role: repair
# problem: cvrp
# expect: any-failure
# why: a choice among an iterator
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    rng.choice(x for x in routes)
    for customer in removed_customers:
        routes.append([customer])
    return routes
