# role: destroy
# problem: tsp
# expect: any-failure
# why: a list of an endless repeat
import itertools


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = list(itertools.repeat(None))
    return current_tour[count:], current_tour[:count]
