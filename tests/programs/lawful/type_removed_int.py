# role: destroy
# problem: tsp
# expect: ok
# why: a single removed node
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[1:], current_tour[0]
