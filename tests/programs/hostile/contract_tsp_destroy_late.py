# role: destroy
# problem: tsp
# expect: invalid
# why: lawful until the search stalls, then removes nothing
def destroy(dist, current_tour, steps_since_improvement, rng):
    if steps_since_improvement > 0:
        return current_tour, []
    return current_tour[2:], current_tour[:2]
