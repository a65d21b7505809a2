# role: destroy
# problem: cvrp
# expect: ok
# why: random customers
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    customers = [c for route in current_routes for c in route]
    removed = rng.sample(customers, max(1, len(customers) // 5))
    gone = set(removed)
    return [[c for c in route if c not in gone] for route in current_routes], removed
