# role: destroy
# problem: cvrp
# expect: any-failure
# why: a flat list of partial routes
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    return [c for r in current_routes for c in r], removed
