# role: repair
# problem: cvrp
# expect: invalid
# why: a customer that does not exist
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return list(partial_routes) + [[c] for c in removed_customers] + [[len(demands)]]
