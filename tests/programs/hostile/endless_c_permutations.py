# role: repair
# problem: tsp
# expect: timeout
# why: the last of 20! permutations
import itertools


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    max(itertools.permutations(range(20)), key=len)
    tour.extend(removed_nodes)
    return tour
