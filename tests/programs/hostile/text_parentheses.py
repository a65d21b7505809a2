# role: repair
# problem: cvrp
# expect: rejected
# why: deep parentheses
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    x = @REPEAT 5000 (@1@REPEAT 5000 )@
    return list(partial_routes) + [[c] for c in removed_customers]
