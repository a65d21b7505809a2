# role: destroy
# problem: cvrp
# expect: ok
# why: routes as arrays
import numpy as np

def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [np.array(r) for r in current_routes]
    removed = np.array([r[0] for r in routes][:4])
    return [r[~np.isin(r, removed)] for r in routes], removed
