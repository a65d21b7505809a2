# role: destroy
# problem: tsp
# expect: any-failure
# why: ten gigabytes of bytearray
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = bytearray(10**10)
    return current_tour[count:], current_tour[:count]
