# role: repair
# problem: cvrp
# expect: any-failure
# why: routes as generators
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [(c for c in r) for r in partial_routes] + [[c] for c in removed_customers]
