# role: repair
# problem: tsp
# expect: any-failure
# why: bytes index as integers
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return bytes(partial_tour + removed_nodes)
