# role: repair
# problem: tsp
# expect: any-failure
# why: a map object
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return map(int, partial_tour + removed_nodes)
