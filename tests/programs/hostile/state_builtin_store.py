# role: repair
# problem: tsp
# expect: rejected
# why: state on a builtin type
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    list.calls = 1
    tour.extend(removed_nodes)
    return tour
