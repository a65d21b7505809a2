# role: repair
# problem: cvrp
# expect: any-failure
# why: too many parameters
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng, extra):
    return list(partial_routes) + [[c] for c in removed_customers]
