# role: destroy
# problem: cvrp
# expect: any-failure
# why: a generic alias called later is no state, but its name is rebound
MAKE = list[int]
KEEP = MAKE()


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    MAKE = list[int]
    MAKE()
    KEEP.append(1)
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
