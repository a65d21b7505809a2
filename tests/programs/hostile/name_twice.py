# role: destroy
# problem: cvrp
# expect: any-failure
# why: the function defined twice
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    return current_routes, removed


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    return current_routes, []
