# role: destroy
# problem: tsp
# expect: invalid
# why: a node in neither list
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[3:], current_tour[:2]
