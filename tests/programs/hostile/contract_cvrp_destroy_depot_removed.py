# role: destroy
# problem: cvrp
# expect: invalid
# why: the depot among the removed
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [0]
    return current_routes, removed
