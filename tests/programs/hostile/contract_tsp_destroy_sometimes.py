# role: destroy
# problem: tsp
# expect: invalid
# why: one call in four removes too many
def destroy(dist, current_tour, steps_since_improvement, rng):
    k = 2 if rng.random() < 0.75 else len(current_tour) // 2
    return current_tour[k:], current_tour[:k]
