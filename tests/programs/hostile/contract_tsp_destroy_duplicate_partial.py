# role: destroy
# problem: tsp
# expect: invalid
# why: a retained node twice
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:] + [current_tour[2]], current_tour[:2]
