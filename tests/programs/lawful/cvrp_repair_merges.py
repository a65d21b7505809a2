# role: repair
# problem: cvrp
# expect: ok
# why: a route emptied and its customers spread
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    pool = list(removed_customers)
    routes = [list(r) for r in partial_routes]
    if routes and rng.random() < 0.5:
        pool += min(routes, key=len)
        routes.remove(min(routes, key=len))
    load = lambda r: sum(demands[c] for c in r)
    for c in pool:
        fits = [r for r in routes if load(r) + demands[c] <= capacity]
        if fits:
            target = min(fits, key=lambda r: min([dist[c][x] for x in r] + [dist[c][0]]))
            target.append(c)
        else:
            routes.append([c])
    return routes
