# role: destroy
# problem: tsp
# expect: ok
# why: exactly floor(0.35 n) nodes
def destroy(dist, current_tour, steps_since_improvement, rng):
    k = int(0.35 * len(current_tour))
    return current_tour[k:], current_tour[:k]
