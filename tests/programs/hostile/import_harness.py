# role: repair
# problem: tsp
# expect: rejected
# why: the harness itself
# reason: spo_jax
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    import spo_jax.envs.evaluator
    tour.extend(removed_nodes)
    return tour
