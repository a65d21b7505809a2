# role: repair
# problem: cvrp
# expect: ok
# why: a dictionary made in every call
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    memory = {}
    for r in routes:
        memory[len(memory)] = r
    for customer in removed_customers:
        routes.append([customer])
    return routes
