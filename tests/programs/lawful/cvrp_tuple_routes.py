# role: destroy
# problem: cvrp
# expect: ok
# why: a tuple of tuples
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = tuple(r[-1] for r in current_routes[:3])
    return tuple(tuple(c for c in r if c not in removed) for r in current_routes), removed
