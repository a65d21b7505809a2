# role: repair
# problem: cvrp
# expect: invalid
# why: depots fill a route
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [list(r) + [0] * 1000 for r in partial_routes] + [[c] for c in removed_customers]
