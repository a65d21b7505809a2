# role: repair
# problem: tsp
# expect: ok
# why: the plain program that many others are built on
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    pass
    tour.extend(removed_nodes)
    return tour
