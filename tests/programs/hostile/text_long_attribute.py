# role: repair
# problem: tsp
# expect: rejected
# why: a chain of four thousand attributes
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = tour@REPEAT 4000 .copy@
    tour.extend(removed_nodes)
    return tour
