# role: repair
# problem: cvrp
# expect: ok
# why: the lists it was given are ruined after reading
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    saved = list(removed_customers)
    for route in partial_routes:
        route[:] = [-5]
    removed_customers.clear()
    removed_customers.extend(saved)
    for customer in removed_customers:
        routes.append([customer])
    return routes
