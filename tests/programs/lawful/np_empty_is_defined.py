# role: repair
# problem: cvrp
# expect: ok
# why: an array called empty must not change a result
import numpy as np

def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    order = np.argsort(np.empty(len(removed_customers)), kind="stable")
    return [list(r) for r in partial_routes] + [[removed_customers[i]] for i in order]
