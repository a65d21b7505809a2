# role: destroy
# problem: tsp
# expect: contained
# why: freeing a deep chain of tees
import itertools


def destroy(dist, current_tour, steps_since_improvement, rng):
    x = [1]
    for _ in range(100000 if steps_since_improvement == 0 else 0):
        x = itertools.tee(x, 1)[0]
    x = None
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
