# role: destroy
# problem: cvrp
# expect: ok
# why: the inner lists it was given are ruined after reading
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    for route in current_routes:
        route.clear()
    current_routes.clear()
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
