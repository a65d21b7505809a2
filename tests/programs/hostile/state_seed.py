# role: destroy
# problem: tsp
# expect: contained
# why: reseeding the generator
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    rng.seed(0)
    return current_tour[count:], current_tour[:count]
