# role: destroy
# problem: tsp
# expect: any-failure
# why: removed first, partial second
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[:2], current_tour[2:]
