# role: destroy
# problem: cvrp
# expect: invalid
# why: a route split in two
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    long = max(current_routes, key=len)
    i = current_routes.index(long)
    return current_routes[:i] + [long[:1], long[1:]] + current_routes[i + 1:], removed
