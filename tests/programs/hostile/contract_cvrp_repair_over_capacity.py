# role: repair
# problem: cvrp
# expect: invalid
# why: all customers in one route
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [[c for r in partial_routes for c in r] + list(removed_customers)]
