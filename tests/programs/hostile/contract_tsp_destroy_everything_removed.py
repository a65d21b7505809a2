# role: destroy
# problem: tsp
# expect: invalid
# why: everything removed
def destroy(dist, current_tour, steps_since_improvement, rng):
    return [], list(current_tour)
