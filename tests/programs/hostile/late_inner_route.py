# role: repair
# problem: cvrp
# expect: contained
# why: a finaliser empties one inner route after the check
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(r) for r in partial_routes if len(r)] + [[c] for c in removed_customers]
    box = []
    def hold():
        try:
            yield box
        finally:
            routes[0].clear()
    holder = hold()
    next(holder)
    box.append(holder)
    junk = [[] for _ in range(3000)]
    return routes
