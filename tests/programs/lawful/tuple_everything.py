# role: destroy
# problem: tsp
# expect: ok
# why: tuples returned
def destroy(dist, current_tour, steps_since_improvement, rng):
    tour = tuple(current_tour)
    return tour[2:], tour[:2]
