# role: repair
# problem: cvrp
# expect: any-failure
# why: True for customer 1
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [[True if c == 1 else c for c in r] for r in list(partial_routes) + [[c] for c in removed_customers]]
