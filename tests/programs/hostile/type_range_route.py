# role: repair
# problem: cvrp
# expect: any-failure
# why: a range as a route
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [range(1, len(dist))]
