# role: repair
# problem: tsp
# expect: any-failure
# why: the debugger
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    breakpoint()
    tour.extend(removed_nodes)
    return tour
