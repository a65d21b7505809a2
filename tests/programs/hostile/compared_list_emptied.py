# role: destroy
# problem: tsp
# expect: any-failure
# why: comparing empties the list that is searched
import functools


def destroy(dist, current_tour, steps_since_improvement, rng):
    found = []
    key = functools.cmp_to_key(lambda a, b: (found.clear(), 1)[1])
    found += [key(v) for v in range(300)]
    found.index(key(5))
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
