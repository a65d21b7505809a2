# role: repair
# problem: tsp
# expect: any-failure
# why: a huge shift at module level
X = 1 << 10**11


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    pass
    tour.extend(removed_nodes)
    return tour
