# role: repair
# problem: cvrp
# expect: any-failure
# why: a bare customer among the routes
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return list(partial_routes) + list(removed_customers)
