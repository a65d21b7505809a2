# role: repair
# problem: cvrp
# expect: contained
# why: an annotation that is a call at module level
def f(x: print('now') = 1) -> [].append(1):
    return x


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    pass
    for customer in removed_customers:
        routes.append([customer])
    return routes
