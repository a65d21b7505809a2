# role: repair
# problem: cvrp
# expect: ok
# why: cheapest feasible insertion, new routes when needed
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(r) for r in partial_routes]
    loads = [sum(demands[c] for c in r) for r in routes]
    for c in sorted(removed_customers, key=lambda x: -demands[x]):
        best = None
        for k, r in enumerate(routes):
            if loads[k] + demands[c] > capacity:
                continue
            path = [0, *r, 0]
            for i in range(len(path) - 1):
                delta = dist[path[i]][c] + dist[c][path[i + 1]] - dist[path[i]][path[i + 1]]
                if best is None or delta < best[0]:
                    best = (delta, k, i)
        if best is None or 2 * dist[0][c] < best[0]:
            routes.append([c])
            loads.append(demands[c])
        else:
            _, k, i = best
            routes[k].insert(i, c)
            loads[k] += demands[c]
    return routes
