# role: destroy
# problem: cvrp
# expect: any-failure
# why: a dictionary of partial routes
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [current_routes[0].pop()]
    return dict(enumerate(current_routes)), removed
