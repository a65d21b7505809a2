# role: destroy
# problem: cvrp
# expect: memory
# why: an integer of ten gigabytes
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    one = 1
    x = one << 80 * 10**9
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
