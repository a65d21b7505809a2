# role: destroy
# problem: cvrp
# expect: contained
# why: what looks like a frame of the result
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    print('\x00\x00\x00\x08' * 4096, end='')
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
