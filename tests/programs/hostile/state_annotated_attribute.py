# role: repair
# problem: cvrp
# expect: rejected
# why: an annotated attribute store
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    repair.calls: int = 1
    for customer in removed_customers:
        routes.append([customer])
    return routes
