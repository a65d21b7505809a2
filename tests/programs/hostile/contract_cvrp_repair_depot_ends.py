# role: repair
# problem: cvrp
# expect: invalid
# why: routes that begin and end at the depot
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [[0] + list(r) + [0] for r in partial_routes] + [[c] for c in removed_customers]
