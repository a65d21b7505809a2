# role: repair
# problem: tsp
# expect: any-failure
# why: NaN for a node
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    t = partial_tour + removed_nodes
    t[3] = float('nan')
    return t
