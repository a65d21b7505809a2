# role: destroy
# problem: cvrp
# expect: crash
# why: a deeply nested list as the message
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    a = []
    for _ in range(10**5):
        a = [a]
    raise ValueError(a)
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
