# role: destroy
# problem: tsp
# expect: any-failure
# why: three values, not two
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:], current_tour[:2], 0
