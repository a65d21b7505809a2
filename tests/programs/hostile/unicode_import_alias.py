# role: destroy
# problem: cvrp
# expect: rejected
# why: an alias in italics
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    import math as __𝑏𝑢𝑖𝑙𝑡𝑖𝑛𝑠__
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
