# role: destroy
# problem: tsp
# expect: any-failure
# why: a list bound by a walrus in an annotation
def helper(x: (CALLS := [])):
    return x


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    CALLS.append(1)
    count = 1 + len(CALLS) % 3
    return current_tour[count:], current_tour[:count]
