# role: destroy
# problem: cvrp
# expect: contained
# why: a sum of two thousand terms
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    x = 1@REPEAT 2000 +1@
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
