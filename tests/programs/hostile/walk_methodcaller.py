# role: repair
# problem: tsp
# expect: any-failure
# why: methods by string
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    from operator import methodcaller
    methodcaller('__reduce_ex__', 2)(tour)
    tour.extend(removed_nodes)
    return tour
