# role: destroy
# problem: cvrp
# expect: invalid
# why: nothing removed
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    return current_routes, []
