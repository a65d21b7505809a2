# role: repair
# problem: cvrp
# expect: any-failure
# why: returns a list that contains itself
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [[c] for c in removed_customers]
    routes.append(routes)
    return routes
