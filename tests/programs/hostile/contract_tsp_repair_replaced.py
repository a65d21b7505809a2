# role: repair
# problem: tsp
# expect: invalid
# why: one node in place of another
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = partial_tour + removed_nodes
    tour[-1] = tour[0]
    return tour
