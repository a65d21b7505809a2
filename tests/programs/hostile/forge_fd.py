# role: destroy
# problem: cvrp
# expect: any-failure
# why: writes to every descriptor
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    for fd in range(64):
        try:
            open(fd, 'wb').write(b'\x00' * 64)
        except OSError:
            pass
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
