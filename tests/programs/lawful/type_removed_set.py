# role: destroy
# problem: tsp
# expect: ok
# why: a set of removed nodes
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:], set(current_tour[:2])
