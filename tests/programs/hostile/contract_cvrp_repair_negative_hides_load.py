# role: repair
# problem: cvrp
# expect: invalid
# why: a customer twice under two numbers
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    out = list(partial_routes) + [[c] for c in removed_customers]
    out.append([removed_customers[0] - len(demands)])
    return out
