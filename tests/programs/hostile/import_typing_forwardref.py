# role: repair
# problem: cvrp
# expect: any-failure
# why: evaluates a string
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    from typing import ForwardRef
    ForwardRef("__import__('os').mkdir('@TMP@/x')")._evaluate({}, {}, frozenset())
    for customer in removed_customers:
        routes.append([customer])
    return routes
