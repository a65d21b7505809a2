# role: destroy
# problem: cvrp
# expect: ok
# why: radial removal with numpy
import numpy as np

def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    customers = np.concatenate([np.array(r, dtype=int) for r in current_routes])
    centre = rng.choice(customers)
    order = customers[np.argsort(dist[centre][customers])]
    removed = order[: max(1, int(0.25 * customers.size))]
    gone = set(removed.tolist())
    return [[c for c in r if c not in gone] for r in current_routes], removed
