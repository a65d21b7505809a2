# role: repair
# problem: tsp
# expect: any-failure
# why: a million nested chains overflow the stack of C
import itertools


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    a = [1]
    for _ in range(2 * 10**5):
        a = itertools.chain(a, [1])
    list(a)
    tour.extend(removed_nodes)
    return tour
