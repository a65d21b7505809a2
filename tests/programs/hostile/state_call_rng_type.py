# role: repair
# problem: tsp
# expect: any-failure
# why: a new generator of rng's type
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    type(rng)(1).random()
    tour.extend(removed_nodes)
    return tour
