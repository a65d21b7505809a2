# role: destroy
# problem: tsp
# expect: any-failure
# why: deeply nested partial objects
import functools


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    f = len
    for _ in range(10**5):
        f = functools.partial(f)
    f(current_tour)
    f = None
    g = abs
    for _ in range(10**5):
        g = functools.partial(g, 1, 2)
    g()
    return current_tour[count:], current_tour[:count]
