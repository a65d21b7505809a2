# role: repair
# problem: tsp
# expect: any-failure
# why: a tower of ten thousand powers
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = 1@REPEAT 10000 **1@
    tour.extend(removed_nodes)
    return tour
