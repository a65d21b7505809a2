# role: repair
# problem: cvrp
# expect: invalid
# why: nothing inserted
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return partial_routes
