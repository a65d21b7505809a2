# role: destroy
# problem: cvrp
# expect: invalid
# why: the order inside a route reversed
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    return [r[::-1] for r in current_routes], removed
