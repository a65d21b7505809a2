# role: repair
# problem: cvrp
# expect: ok
# why: tuples of numpy integers
import numpy as np

def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    singles = [(np.int64(c),) for c in removed_customers]
    return tuple(tuple(np.int32(c) for c in r) for r in partial_routes) + tuple(singles)
