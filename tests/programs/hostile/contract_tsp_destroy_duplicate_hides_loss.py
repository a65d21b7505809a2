# role: destroy
# problem: tsp
# expect: invalid
# why: a node twice hides one lost
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[3:], [current_tour[0], current_tour[1], current_tour[1]]
