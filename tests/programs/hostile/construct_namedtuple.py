# role: destroy
# problem: cvrp
# expect: contained
# why: a class made by a factory
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    from collections import namedtuple
    Point = namedtuple('Point', 'x y')
    Point(1, 2)
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
