# role: repair
# problem: cvrp
# expect: any-failure
# why: customers without routes
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [c for r in partial_routes for c in r] + list(removed_customers)
