# role: destroy
# problem: tsp
# expect: invalid
# why: one more than 35%
def destroy(dist, current_tour, steps_since_improvement, rng):
    k = int(0.35 * len(current_tour)) + 1
    return current_tour[k:], current_tour[:k]
