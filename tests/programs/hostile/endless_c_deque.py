# role: repair
# problem: tsp
# expect: timeout
# why: a deque that drains an endless iterator in C
import itertools


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    from collections import deque
    deque(itertools.count(), maxlen=0)
    tour.extend(removed_nodes)
    return tour
