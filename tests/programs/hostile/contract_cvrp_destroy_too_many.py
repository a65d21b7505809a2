# role: destroy
# problem: cvrp
# expect: invalid
# why: one more than 35%
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    n = sum(len(r) for r in current_routes)
    k = int(0.35 * n) + 1
    removed = [c for r in current_routes for c in r][:k]
    return [[c for c in r if c not in removed] for r in current_routes], removed
