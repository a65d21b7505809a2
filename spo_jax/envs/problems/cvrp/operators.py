"""Operators of G-LNS as programs: a template for `spo_jax.envs.glns_operators`."""

ADAPTER = '''
def adapter_data(dist, demands, capacity):
    matrix = adapter_np.asarray(dist)
    return {{
        "distance_matrix": matrix,
        "demands": adapter_np.asarray(demands),
        "capacity": capacity,
        "depot_idx": 0{coordinates},
    }}


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    """{destroy_strategy}"""
    operator = {destroy}
    customers = [node for route in current_routes for node in route]
    count = max(1, int({fraction} * len(customers)))
    routes = [list(route) for route in current_routes]
    removed = operator(routes, count, adapter_data(dist, demands, capacity))[0]
    taken = adapter_taken(removed, customers, rng)
    gone = set(taken)
    kept = [[node for node in route if node not in gone] for route in current_routes]
    return [route for route in kept if route], taken


def repair(
    dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng
):
    """{repair_strategy}"""
    operator = {repair}
    routes = [list(route) for route in partial_routes]
    data = adapter_data(dist, demands, capacity)
    routes = operator(routes, list(removed_customers), data)
    return [[int(node) for node in route] for route in routes if len(route)]
'''
