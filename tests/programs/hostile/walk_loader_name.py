# role: destroy
# problem: tsp
# expect: any-failure
# why: the loader by name
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    __loader__
    __spec__
    return current_tour[count:], current_tour[:count]
