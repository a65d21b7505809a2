# role: repair
# problem: cvrp
# expect: invalid
# why: customers counted from the end
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [[c - len(demands) for c in r] for r in list(partial_routes) + [[c] for c in removed_customers]]
