# role: destroy
# problem: cvrp
# expect: rejected
# why: a class pattern's attribute in italics
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    match routes:
        case object(__𝑐𝑙𝑎𝑠𝑠__=c):
            pass
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
