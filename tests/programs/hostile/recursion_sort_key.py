# role: repair
# problem: cvrp
# expect: any-failure
# why: recursion through a sort key
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    def f(x):
        return sorted([1], key=f)
    f(1)
    for customer in removed_customers:
        routes.append([customer])
    return routes
