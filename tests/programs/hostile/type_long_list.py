# role: repair
# problem: tsp
# expect: any-failure
# why: ten million nodes
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return (partial_tour + removed_nodes) * 500000
