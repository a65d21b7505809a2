# role: destroy
# problem: tsp
# expect: any-failure
# why: raw memory
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    memoryview(b'x')
    return current_tour[count:], current_tour[:count]
