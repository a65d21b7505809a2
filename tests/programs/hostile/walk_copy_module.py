# role: repair
# problem: tsp
# expect: any-failure
# why: a copied module shim is not writable either
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    import copy
    import math
    m = copy.copy(math)
    m.pi = 3
    tour.extend(removed_nodes)
    return tour
