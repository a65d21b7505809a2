# role: destroy
# problem: cvrp
# expect: contained
# why: a deep copy of the generator foresees its draws
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    import copy
    ahead = copy.deepcopy(rng)
    if ahead.random() < 2:
        pass
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
