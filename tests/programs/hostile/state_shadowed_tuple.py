# role: destroy
# problem: tsp
# expect: any-failure
# why: a builtin that may be called at module level is redefined to return a list
def tuple(x):
    return [x]


CALLS = tuple(0)


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    CALLS.append(1)
    count = 1 + len(CALLS) % 3
    return current_tour[count:], current_tour[:count]
