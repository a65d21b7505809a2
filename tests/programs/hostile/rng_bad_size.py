# role: destroy
# problem: tsp
# expect: any-failure
# why: a negative size
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    rng.random(-1)
    return current_tour[count:], current_tour[:count]
