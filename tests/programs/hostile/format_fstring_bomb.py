# role: repair
# problem: cvrp
# expect: any-failure
# why: a width of ten billion in an f-string
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    len(f'{1:>10000000000}')
    for customer in removed_customers:
        routes.append([customer])
    return routes
