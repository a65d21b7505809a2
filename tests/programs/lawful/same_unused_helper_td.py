# role: destroy
# problem: tsp
# expect: ok
# why: a helper that is never called
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    pass
    return current_tour[count:], current_tour[:count]


def unused(x):
    return x
