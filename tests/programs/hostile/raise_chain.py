# role: destroy
# problem: cvrp
# expect: any-failure
# why: a chain of ten thousand causes
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    e = None
    for i in range(10000):
        try:
            raise ValueError(i) from e
        except ValueError as error:
            e = error
    raise e
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
