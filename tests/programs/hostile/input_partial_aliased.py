# role: repair
# problem: cvrp
# expect: invalid
# why: the same route object many times
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    route = partial_routes[0]
    return [route for _ in partial_routes] + [[c] for c in removed_customers]
