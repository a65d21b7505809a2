# role: repair
# problem: tsp
# expect: rejected
# why: a function's globals
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    repair.__globals__['x'] = 1
    tour.extend(removed_nodes)
    return tour
