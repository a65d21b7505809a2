# role: destroy
# problem: cvrp
# expect: any-failure
# why: a million nested maps overflow the stack of C
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    a = iter([1])
    for _ in range(2 * 10**5):
        a = map(abs, a)
    next(a)
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
