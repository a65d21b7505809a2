# role: repair
# problem: cvrp
# expect: any-failure
# why: an object array of routes
import numpy as np


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    out = np.empty(len(partial_routes) + len(removed_customers), dtype=object)
    for i, r in enumerate(list(partial_routes) + [[c] for c in removed_customers]):
        out[i] = r
    return out
