# role: destroy
# problem: cvrp
# expect: rejected
# why: a null character
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    return current_routes, [@NUL@]
