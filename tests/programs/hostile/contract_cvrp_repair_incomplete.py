# role: repair
# problem: cvrp
# expect: invalid
# why: one removed customer forgotten
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return list(partial_routes) + [[c] for c in removed_customers[1:]]
