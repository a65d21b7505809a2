# role: destroy
# problem: cvrp
# expect: invalid
# why: a retained customer moves to another route
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    long = max(current_routes, key=len)
    other = min((r for r in current_routes if r is not long), key=len)
    other.append(long.pop())
    return current_routes, removed
