# role: repair
# problem: cvrp
# expect: any-failure
# why: the object of an error by a starred pattern
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    try:
        routes.nonsense
    except AttributeError as e:
        e.obj
    for customer in removed_customers:
        routes.append([customer])
    return routes
