# role: repair
# problem: cvrp
# expect: invalid
# why: lawful until the search stalls, then over capacity
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    out = list(partial_routes) + [[c] for c in removed_customers]
    if steps_since_improvement > 0:
        return [[c for r in out for c in r]]
    return out
