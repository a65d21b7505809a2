# role: repair
# problem: cvrp
# expect: contained
# why: freeing a million nested iterators overflows the stack of C
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    a = iter([1])
    for _ in range(2 * 10**5):
        a = enumerate(a)
    a = None
    for customer in removed_customers:
        routes.append([customer])
    return routes
