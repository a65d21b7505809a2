# role: repair
# problem: tsp
# expect: rejected
# why: an attribute as a comprehension target
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    [0 for repair.calls in range(3)]
    tour.extend(removed_nodes)
    return tour
