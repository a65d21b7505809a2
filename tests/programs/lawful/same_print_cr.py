# role: repair
# problem: cvrp
# expect: ok
# why: output changes nothing
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    print('x' * 10000)
    print([1, 2], {'a': 1}, end='')
    for customer in removed_customers:
        routes.append([customer])
    return routes
