# role: repair
# problem: tsp
# expect: any-failure
# why: writes through the transpose
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    dist.T[0, 1] = 5.0
    tour.extend(removed_nodes)
    return tour
