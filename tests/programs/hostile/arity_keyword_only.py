# role: repair
# problem: tsp
# expect: any-failure
# why: parameters that only keywords reach
def repair(*, dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return partial_tour + removed_nodes
