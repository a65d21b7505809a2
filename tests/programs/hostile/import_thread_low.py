# role: destroy
# problem: cvrp
# expect: rejected
# why: threads by the low-level module
# reason: _thread
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    import _thread
    _thread.start_new_thread(print, ())
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed
