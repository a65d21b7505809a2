# role: destroy
# problem: cvrp
# expect: ok
# why: array methods on demands
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    mean = demands[1:].mean()
    big = [c for r in current_routes for c in r if demands[c] >= mean]
    removed = big[:4]
    return [[c for c in r if c not in removed] for r in current_routes], removed
