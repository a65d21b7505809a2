# role: repair
# problem: tsp
# expect: contained
# why: a constant of nine hundred terms at module level
X = 1@REPEAT 900 +1@


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    pass
    tour.extend(removed_nodes)
    return tour
