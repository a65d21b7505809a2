# role: destroy
# problem: cvrp
# expect: invalid
# why: a customer removed twice
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    c = current_routes[0].pop()
    return current_routes, [c, c]
