# role: repair
# problem: tsp
# expect: any-failure
# why: a class made by type
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    tour = type('Liar', (list,), {'__len__': lambda self: 0})(tour)
    tour.extend(removed_nodes)
    return tour
