# role: repair
# problem: tsp
# expect: any-failure
# why: setattr
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    setattr(repair, 'calls', 1)
    tour.extend(removed_nodes)
    return tour
