# role: repair
# problem: tsp
# expect: any-failure
# why: the tour inside a tuple
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return (partial_tour + removed_nodes,)
