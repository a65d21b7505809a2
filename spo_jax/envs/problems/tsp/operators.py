"""Operators of G-LNS as programs: a template for `spo_jax.envs.glns_operators`."""

ADAPTER = '''
def adapter_data(dist):
    matrix = adapter_np.asarray(dist)
    return {{"distance_matrix": matrix{coordinates}}}


def destroy(dist, current_tour, steps_since_improvement, rng):
    """{destroy_strategy}"""
    operator = {destroy}
    count = max(1, int({fraction} * len(current_tour)))
    removed = operator(list(current_tour), count, adapter_data(dist))[0]
    taken = adapter_taken(removed, current_tour, rng)
    gone = set(taken)
    return [node for node in current_tour if node not in gone], taken


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """{repair_strategy}"""
    operator = {repair}
    tour = operator(list(partial_tour), list(removed_nodes), adapter_data(dist))
    return [int(node) for node in tour]
'''
