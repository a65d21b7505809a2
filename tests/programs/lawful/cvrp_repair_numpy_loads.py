# role: repair
# problem: cvrp
# expect: ok
# why: loads in an array that grows
import numpy as np

def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(map(int, r)) for r in partial_routes]
    loads = np.array([demands[np.array(r, dtype=int)].sum() for r in routes], dtype=np.int64)
    for c in rng.permutation(removed_customers):
        c = int(c)
        ok = np.flatnonzero(loads + demands[c] <= capacity)
        if ok.size:
            k = int(ok[np.argmin([min((dist[c, x] for x in routes[j]), default=dist[c, 0]) for j in ok])])
            routes[k].append(c)
            loads[k] += demands[c]
        else:
            routes.append([c])
            loads = np.append(loads, demands[c])
    return routes
