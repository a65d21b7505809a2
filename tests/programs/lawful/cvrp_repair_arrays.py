# role: repair
# problem: cvrp
# expect: ok
# why: routes as arrays
import numpy as np

def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [np.array(r, dtype=np.int64) for r in partial_routes]
    q = np.asarray(demands)
    for c in removed_customers:
        spare = [capacity - q[r].sum() for r in routes]
        k = int(np.argmax(spare))
        if spare[k] >= q[c]:
            routes[k] = np.append(routes[k], c)
        else:
            routes.append(np.array([c]))
    return routes
