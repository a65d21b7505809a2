# role: destroy
# problem: tsp
# expect: rejected
# why: a dunder keyword argument
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    dict(__class__=1)
    return current_tour[count:], current_tour[:count]
