# role: destroy
# problem: tsp
# expect: rejected
# why: str.format reaches attributes
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    '{0.__class__.__base__}'.format(current_tour)
    return current_tour[count:], current_tour[:count]
