# role: repair
# problem: tsp
# expect: any-failure
# why: a class made by a factory of typing
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    from typing import NamedTuple
    NamedTuple('Point', [('x', int)])
    tour.extend(removed_nodes)
    return tour
