# role: destroy
# problem: tsp
# expect: invalid
# why: a node counted from the end
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[1:], [current_tour[0] - len(current_tour)]
