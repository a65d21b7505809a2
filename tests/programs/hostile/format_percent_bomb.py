# role: repair
# problem: tsp
# expect: any-failure
# why: a width of ten billion
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    len('%010000000000d' % 1)
    tour.extend(removed_nodes)
    return tour
