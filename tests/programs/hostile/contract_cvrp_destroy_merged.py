# role: destroy
# problem: cvrp
# expect: invalid
# why: two routes merged into one
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    return [current_routes[0] + current_routes[1]] + current_routes[2:], removed
