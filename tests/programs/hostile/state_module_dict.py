# role: destroy
# problem: tsp
# expect: crash
# why: a dictionary at module level
CALLS = {}


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    CALLS[0] = CALLS.get(0, 0) + 1
    return current_tour[count:], current_tour[:count]
