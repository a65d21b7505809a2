# role: repair
# problem: tsp
# expect: rejected
# why: the module table
# reason: sys
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    import sys
    sys.modules['os'].mkdir('@TMP@/x')
    tour.extend(removed_nodes)
    return tour
