# role: repair
# problem: cvrp
# expect: rejected
# why: a class pattern reads attributes
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    match routes:
        case object(__class__=found):
            found.__base__
    for customer in removed_customers:
        routes.append([customer])
    return routes
