# role: repair
# problem: cvrp
# expect: ok
# why: an empty route among the answer
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [list(r) for r in partial_routes] + [[c] for c in removed_customers] + [[]]
