# role: destroy
# problem: cvrp
# expect: invalid
# why: a customer that does not exist
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop(), len(demands)]
    return current_routes, removed
