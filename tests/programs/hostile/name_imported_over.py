# role: repair
# problem: cvrp
# expect: any-failure
# why: the function's name bound by an import
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return list(partial_routes) + [[c] for c in removed_customers]


from math import sqrt as repair
