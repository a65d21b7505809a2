# role: destroy
# problem: tsp
# expect: invalid
# why: two retained nodes swapped
def destroy(dist, current_tour, steps_since_improvement, rng):
    rest = current_tour[2:]
    rest[0], rest[1] = rest[1], rest[0]
    return rest, current_tour[:2]
