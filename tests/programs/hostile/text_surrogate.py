# role: repair
# problem: tsp
# expect: rejected
# why: an unpaired surrogate
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    x = '@SURROGATE@'
    return partial_tour + removed_nodes
