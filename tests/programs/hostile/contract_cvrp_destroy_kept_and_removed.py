# role: destroy
# problem: cvrp
# expect: invalid
# why: a customer in both
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0][0]]
    return current_routes, removed
