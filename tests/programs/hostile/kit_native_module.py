# role: destroy
# problem: tsp
# expect: rejected
# why: the compiled module itself
def destroy(dist, current_tour, steps_since_improvement, rng):
    from spo_jax.envs.problems.tsp.kit import _native
    return current_tour[4:], current_tour[:4]
