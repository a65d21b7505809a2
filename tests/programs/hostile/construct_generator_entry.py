# role: destroy
# problem: tsp
# expect: any-failure
# why: the entry function is itself a generator
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    yield count
    return current_tour[count:], current_tour[:count]
