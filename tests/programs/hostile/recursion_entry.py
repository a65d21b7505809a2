# role: repair
# problem: tsp
# expect: crash
# why: the entry function calls itself
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    return repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng)
    tour.extend(removed_nodes)
    return tour
