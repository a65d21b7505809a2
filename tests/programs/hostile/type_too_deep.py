# role: repair
# problem: cvrp
# expect: any-failure
# why: routes one level too deep
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [list(partial_routes) + [[c] for c in removed_customers]]
