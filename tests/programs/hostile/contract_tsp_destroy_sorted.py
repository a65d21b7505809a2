# role: destroy
# problem: tsp
# expect: invalid
# why: the retained nodes sorted
def destroy(dist, current_tour, steps_since_improvement, rng):
    return sorted(current_tour[2:]), current_tour[:2]
