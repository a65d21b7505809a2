# role: destroy
# problem: tsp
# expect: invalid
# why: the retained order reversed
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:][::-1], current_tour[:2]
