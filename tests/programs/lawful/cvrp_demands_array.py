# role: destroy
# problem: cvrp
# expect: ok
# why: demands as an array
import numpy as np

def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    q = np.array(demands, dtype=float)
    loads = np.array([q[r].sum() for r in current_routes])
    ratio = loads / capacity
    tight = int(ratio.argmax())
    removed = current_routes[tight][: max(1, len(current_routes[tight]) // 2)]
    return [[c for c in r if c not in removed] for r in current_routes], removed
