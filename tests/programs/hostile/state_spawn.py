# role: repair
# problem: tsp
# expect: any-failure
# why: a child generator
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    rng.spawn(1)
    tour.extend(removed_nodes)
    return tour
