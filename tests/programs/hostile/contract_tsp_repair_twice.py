# role: repair
# problem: tsp
# expect: invalid
# why: a node twice
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return partial_tour + removed_nodes + removed_nodes[:1]
