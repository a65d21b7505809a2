# role: repair
# problem: cvrp
# expect: any-failure
# why: routes as text
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return ['%d' % c for r in partial_routes for c in r] + [str(c) for c in removed_customers]
