# role: repair
# problem: tsp
# expect: any-failure
# why: seven thousand negations
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = @REPEAT 7000 not @1
    tour.extend(removed_nodes)
    return tour
