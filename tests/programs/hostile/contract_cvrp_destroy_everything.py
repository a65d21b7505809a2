# role: destroy
# problem: cvrp
# expect: invalid
# why: all customers removed
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    return [], [c for r in current_routes for c in r]
