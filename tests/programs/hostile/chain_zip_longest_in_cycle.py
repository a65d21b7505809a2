# role: destroy
# problem: tsp
# expect: contained
# why: a deep chain in a cycle, which only the collector frees
import itertools


def destroy(dist, current_tour, steps_since_improvement, rng):
    x = [1]
    for _ in range(100000 if steps_since_improvement == 0 else 0):
        x = itertools.zip_longest(x)
    x = [x]; x.append(x)
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
