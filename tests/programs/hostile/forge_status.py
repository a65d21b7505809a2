# role: repair
# problem: cvrp
# expect: any-failure
# why: answers with a status of the harness
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    return {'status': 0, 'best_cost': [0.0] * 21}
    for customer in removed_customers:
        routes.append([customer])
    return routes
