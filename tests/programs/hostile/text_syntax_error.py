# role: destroy
# problem: tsp
# expect: rejected
# why: a missing parenthesis
def destroy(dist, current_tour, steps_since_improvement, rng):
    return (current_tour[2:], current_tour[:2]
