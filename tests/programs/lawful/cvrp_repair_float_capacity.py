# role: repair
# problem: cvrp
# expect: ok
# why: capacity in divisions, demands in comprehensions
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    fill = lambda r: sum([demands[c] for c in r]) / capacity
    routes = sorted(([*r] for r in partial_routes), key=fill)
    for c in removed_customers:
        target = next((r for r in routes if fill(r) + demands[c] / capacity <= 1.0 - 1e-9), None)
        if target is None:
            target = []
            routes.append(target)
        target.append(c)
    return routes
