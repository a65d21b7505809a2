# role: repair
# problem: tsp
# expect: rejected
# why: a source of four hundred kilobytes
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = '@REPEAT 400000 a@'
    tour.extend(removed_nodes)
    return tour
