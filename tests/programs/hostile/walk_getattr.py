# role: destroy
# problem: tsp
# expect: any-failure
# why: getattr
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    getattr(current_tour, '__class__')
    return current_tour[count:], current_tour[:count]
