# role: destroy
# problem: tsp
# expect: rejected
# why: what a method of rng is bound to
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    rng.random.__self__.seed(0)
    return current_tour[count:], current_tour[:count]
