# role: destroy
# problem: cvrp
# expect: any-failure
# why: a coroutine's frame
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    async def c():
        return 1
    c().cr_frame.f_back
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
