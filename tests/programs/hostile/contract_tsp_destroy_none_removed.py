# role: destroy
# problem: tsp
# expect: invalid
# why: nothing removed
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour, []
