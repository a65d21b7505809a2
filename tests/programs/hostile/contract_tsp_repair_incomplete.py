# role: repair
# problem: tsp
# expect: invalid
# why: one removed node forgotten
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return partial_tour + removed_nodes[:-1]
