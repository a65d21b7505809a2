# role: repair
# problem: cvrp
# expect: any-failure
# why: a dictionary of routes
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return dict(enumerate(list(partial_routes) + [[c] for c in removed_customers]))
