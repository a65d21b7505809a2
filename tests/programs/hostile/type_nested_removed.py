# role: destroy
# problem: cvrp
# expect: any-failure
# why: removed customers grouped
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = [[r.pop()] for r in current_routes[:2]]
    return current_routes, removed
