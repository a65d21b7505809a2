# role: repair
# problem: cvrp
# expect: invalid
# why: no routes
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return []
