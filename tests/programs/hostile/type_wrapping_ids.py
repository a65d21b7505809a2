# role: repair
# problem: tsp
# expect: any-failure
# why: equal to a node modulo 2^64
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [x + 2**64 for x in partial_tour + removed_nodes]
