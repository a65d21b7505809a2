# role: repair
# problem: tsp
# expect: rejected
# why: a branch at module level
if True:
    X = 1


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    pass
    tour.extend(removed_nodes)
    return tour
