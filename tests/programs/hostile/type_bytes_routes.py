# role: repair
# problem: cvrp
# expect: any-failure
# why: routes as bytes
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return [bytes(r) for r in partial_routes] + [bytes([c]) for c in removed_customers]
