# role: repair
# problem: cvrp
# expect: rejected
# why: a dunder of a module
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    import heapq
    len(heapq.__spec__.loader.path)
    for customer in removed_customers:
        routes.append([customer])
    return routes
