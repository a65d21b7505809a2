# role: destroy
# problem: tsp
# expect: any-failure
# why: a dictionary of two keys unpacks too
def destroy(dist, current_tour, steps_since_improvement, rng):
    return {1: current_tour[2:], 2: current_tour[:2]}
