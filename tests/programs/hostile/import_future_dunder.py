# role: repair
# problem: tsp
# expect: rejected
# why: an import bound to a dunder name
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    import math as __builtins__
    tour.extend(removed_nodes)
    return tour
