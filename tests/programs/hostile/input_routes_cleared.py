# role: destroy
# problem: cvrp
# expect: invalid
# why: empties the inner routes it was given
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0][0]]
    for route in current_routes:
        route.clear()
    return current_routes, removed
