# role: destroy
# problem: tsp
# expect: rejected
# why: a loop at module level
for x in range(10):
    pass


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    pass
    return current_tour[count:], current_tour[:count]
