# role: destroy
# problem: tsp
# expect: ok
# why: the removed nodes in another order than the tour's
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = list(reversed(current_tour[3:8]))
    return current_tour[:3] + current_tour[8:], removed
