# role: repair
# problem: tsp
# expect: any-failure
# why: an exception group
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    raise ExceptionGroup('x', [ValueError(1), ExceptionGroup('y', [KeyError(2)])])
    tour.extend(removed_nodes)
    return tour
