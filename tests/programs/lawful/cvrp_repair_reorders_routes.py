# role: repair
# problem: cvrp
# expect: ok
# why: the routes in another order
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(r) for r in partial_routes] + [[c] for c in removed_customers]
    routes.sort(key=len)
    routes.reverse()
    return routes
