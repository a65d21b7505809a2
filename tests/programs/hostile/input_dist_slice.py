# role: repair
# problem: tsp
# expect: any-failure
# why: writes a slice
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    dist[:] = 0
    tour.extend(removed_nodes)
    return tour
