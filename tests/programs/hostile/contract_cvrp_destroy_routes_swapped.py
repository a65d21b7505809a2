# role: destroy
# problem: cvrp
# expect: invalid
# why: the order of routes reversed
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    return current_routes[::-1], removed
