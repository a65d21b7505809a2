# role: destroy
# problem: tsp
# expect: invalid
# why: the retained nodes shuffled
def destroy(dist, current_tour, steps_since_improvement, rng):
    rest = current_tour[2:]
    rng.shuffle(rest)
    return rest, current_tour[:2]
