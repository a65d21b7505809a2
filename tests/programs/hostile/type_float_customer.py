# role: repair
# problem: cvrp
# expect: any-failure
# why: customers as floats
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [[float(c) for c in r] for r in list(partial_routes) + [[c] for c in removed_customers]]
