# role: destroy
# problem: tsp
# expect: any-failure
# why: one value, not two
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:]
