# role: destroy
# problem: tsp
# expect: any-failure
# why: two times nothing
def destroy(dist, current_tour, steps_since_improvement, rng):
    return None, None
