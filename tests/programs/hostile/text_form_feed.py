# role: repair
# problem: tsp
# expect: any-failure
# why: a refused name behind a form feed and a continuation
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    \
    eval('1')
    tour.extend(removed_nodes)
    return tour
