# role: repair
# problem: tsp
# expect: rejected
# why: a dunder that looks harmless
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    repair.__doc__
    tour.extend(removed_nodes)
    return tour
