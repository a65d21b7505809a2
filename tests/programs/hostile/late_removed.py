# role: destroy
# problem: cvrp
# expect: contained
# why: a finaliser empties the routes while repair reads them
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    box = []
    def hold():
        try:
            yield box
        finally:
            routes.clear()
    holder = hold()
    next(holder)
    box.append(holder)
    junk = [[] for _ in range(3000)]
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
