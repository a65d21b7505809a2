# role: repair
# problem: cvrp
# expect: crash
# why: a deep copy of a deeply nested list
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    import copy
    a = []
    for _ in range(10**5):
        a = [a]
    copy.deepcopy(a)
    for customer in removed_customers:
        routes.append([customer])
    return routes
