# role: destroy
# problem: cvrp
# expect: any-failure
# why: an endless loop that swallows everything
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
