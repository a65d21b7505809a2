# role: repair
# problem: tsp
# expect: any-failure
# why: a bytearray indexes as integers
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return bytearray(partial_tour + removed_nodes)
