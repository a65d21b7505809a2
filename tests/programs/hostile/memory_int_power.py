# role: destroy
# problem: tsp
# expect: any-failure
# why: a tower of powers
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = 10 ** 10 ** 8
    return current_tour[count:], current_tour[:count]
