# role: destroy
# problem: tsp
# expect: any-failure
# why: a huge constant expression at module level
X = 9 ** 9 ** 9


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    pass
    return current_tour[count:], current_tour[:count]
