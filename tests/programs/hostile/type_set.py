# role: repair
# problem: tsp
# expect: any-failure
# why: a set
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return set(partial_tour + removed_nodes)
