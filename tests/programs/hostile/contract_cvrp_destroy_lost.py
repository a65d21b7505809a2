# role: destroy
# problem: cvrp
# expect: invalid
# why: a customer in neither list
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    current_routes[-1].pop()
    return current_routes, removed
