# role: destroy
# problem: cvrp
# expect: ok
# why: sets of mixed things iterate in an order that must not change a result
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    things = {("c", c, None, 0.5, frozenset([c])) for r in current_routes for c in r}
    removed = [t[1] for t in list(things)[:4]]
    return [[c for c in r if c not in removed] for r in current_routes], removed
