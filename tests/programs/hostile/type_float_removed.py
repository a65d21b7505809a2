# role: destroy
# problem: cvrp
# expect: any-failure
# why: removed customers as floats
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [float(r.pop()) for r in current_routes[:2]]
    return current_routes, removed
