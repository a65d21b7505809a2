# role: destroy
# problem: tsp
# expect: invalid
# why: a node in both lists
def destroy(dist, current_tour, steps_since_improvement, rng):
    return list(current_tour), current_tour[:2]
