# role: destroy
# problem: tsp
# expect: invalid
# why: a node that does not exist
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:], current_tour[:2] + [len(current_tour)]
