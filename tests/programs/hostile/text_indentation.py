# role: repair
# problem: tsp
# expect: rejected
# why: mixed indentation
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
        tour = list(partial_tour)
    return tour + removed_nodes
