# role: destroy
# problem: tsp
# expect: timeout
# why: an endless sum in C
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    sum(range(10**14))
    return current_tour[count:], current_tour[:count]
