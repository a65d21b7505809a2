# role: destroy
# problem: cvrp
# expect: rejected
# why: a cache built at module level
import functools


def plain(x):
    return x


cached = functools.lru_cache(None)(plain)


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    cached(count)
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
