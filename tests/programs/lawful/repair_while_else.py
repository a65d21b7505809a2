# role: repair
# problem: tsp
# expect: ok
# why: while/else around insertions
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    pending, tour = list(removed_nodes), list(partial_tour)
    while pending:
        v = pending.pop(0)
        tour += [v]
    else:
        tour = tour or list(partial_tour)
    return tour
