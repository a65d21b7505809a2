# role: repair
# problem: tsp
# expect: any-failure
# why: an unbound name of a million letters in a KeyError
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    {}['k' * 10**6]
    tour.extend(removed_nodes)
    return tour
