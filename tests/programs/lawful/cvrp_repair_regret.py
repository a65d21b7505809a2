# role: repair
# problem: cvrp
# expect: ok
# why: regret with infinite costs for full routes
import math

def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [r[:] for r in partial_routes if len(r) > 0]
    left = set(removed_customers)

    def options(c):
        found = [(2 * dist[0][c], len(routes), 0)]
        for k, r in enumerate(routes):
            if sum(demands[x] for x in r) + demands[c] <= capacity:
                path = [0] + r + [0]
                found.append(min((dist[path[i]][c] + dist[c][path[i + 1]] - dist[path[i]][path[i + 1]], k, i)
                                 for i in range(len(r) + 1)))
        return sorted(found)

    while left:
        best, choice = -math.inf, None
        for c in sorted(left):
            opts = options(c)
            regret = (opts[1][0] if len(opts) > 1 else math.inf) - opts[0][0]
            if regret > best:
                best, choice = regret, (c, opts[0])
        c, (_, k, i) = choice
        if k == len(routes):
            routes.append([])
        routes[k].insert(i, c)
        left.remove(c)
    return routes
