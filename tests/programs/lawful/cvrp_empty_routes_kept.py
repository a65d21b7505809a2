# role: destroy
# problem: cvrp
# expect: ok
# why: a whole route removed, its empty list kept
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    short = min(range(len(current_routes)), key=lambda i: (len(current_routes[i]), i))
    removed = list(current_routes[short])[:7]
    return [[c for c in r if c not in removed] for r in current_routes], removed
