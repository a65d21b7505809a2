# role: repair
# problem: cvrp
# expect: contained
# why: one memory error swallowed
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    try:
        x = [0] * 10**10
    except MemoryError:
        pass
    for customer in removed_customers:
        routes.append([customer])
    return routes
