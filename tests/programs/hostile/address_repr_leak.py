# role: repair
# problem: tsp
# expect: any-failure
# why: the address of a function as text must not be a number to count on
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = repr(repair)
    return tour + removed_nodes if x is None else undefined_name
    tour.extend(removed_nodes)
    return tour
