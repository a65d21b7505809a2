# role: destroy
# problem: cvrp
# expect: ok
# why: pops from the routes it was given
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = []
    for route in current_routes:
        if route and len(removed) < 5:
            removed.append(route.pop(rng.randrange(len(route))))
    return current_routes, removed
