# role: repair
# problem: cvrp
# expect: any-failure
# why: routes as sets
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [set(r) for r in partial_routes] + [{c} for c in removed_customers]
