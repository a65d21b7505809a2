# role: destroy
# problem: tsp
# expect: contained
# why: a call through a deep chain of partials
import functools


def destroy(dist, current_tour, steps_since_improvement, rng):
    x = max
    for _ in range(100000 if steps_since_improvement == 0 else 0):
        x = functools.partial(map, x)
    x([1])
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
