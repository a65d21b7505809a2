# role: repair
# problem: tsp
# expect: any-failure
# why: a container imported under the name of a builtin
from collections import deque as frozenset

CALLS = frozenset((0,))


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    CALLS.append(1)
    tour.extend(removed_nodes)
    return tour
