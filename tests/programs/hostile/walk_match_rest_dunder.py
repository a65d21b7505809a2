# role: repair
# problem: cvrp
# expect: rejected
# why: a mapping rest bound to a dunder name
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    match {1: 2}:
        case {1: 2, **__builtins__}:
            pass
    for customer in removed_customers:
        routes.append([customer])
    return routes
