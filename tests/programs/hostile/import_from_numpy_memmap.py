# role: repair
# problem: tsp
# expect: rejected
# why: a file mapped by numpy
# reason: memmap
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    from numpy import memmap
    memmap('@TMP@/x', shape=(4,), mode='w+')
    tour.extend(removed_nodes)
    return tour
