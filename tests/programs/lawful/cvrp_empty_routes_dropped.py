# role: destroy
# problem: cvrp
# expect: ok
# why: a whole route removed and dropped
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    short = min(range(len(current_routes)), key=lambda i: (len(current_routes[i]), i))
    removed = list(current_routes[short])
    if len(removed) > 7:
        removed = removed[:7]
    partial = [[c for c in r if c not in removed] for r in current_routes]
    return [r for r in partial if r], removed
