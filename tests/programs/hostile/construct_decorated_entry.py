# role: repair
# problem: tsp
# expect: rejected
# why: a decorator on the entry function
import functools


@functools.cache
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return partial_tour + removed_nodes
