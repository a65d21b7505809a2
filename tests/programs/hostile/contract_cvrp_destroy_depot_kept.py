# role: destroy
# problem: cvrp
# expect: invalid
# why: the depot inside partial routes
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    return [[0] + r + [0] for r in current_routes], removed
