# role: repair
# problem: tsp
# expect: any-failure
# why: an import as an expression
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    (lambda: (m := __import__('os')))().mkdir('@TMP@/x')
    tour.extend(removed_nodes)
    return tour
