# role: repair
# problem: tsp
# expect: any-failure
# why: reading the generator's state
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    rng.getstate()
    tour.extend(removed_nodes)
    return tour
