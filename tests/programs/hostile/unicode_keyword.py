# role: repair
# problem: cvrp
# expect: rejected
# why: a keyword argument in italics
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    dict(__𝑐𝑙𝑎𝑠𝑠__=1)
    for customer in removed_customers:
        routes.append([customer])
    return routes
