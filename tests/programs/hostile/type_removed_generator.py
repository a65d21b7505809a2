# role: destroy
# problem: tsp
# expect: any-failure
# why: a generator of removed nodes
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:], (x for x in current_tour[:2])
