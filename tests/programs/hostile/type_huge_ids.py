# role: repair
# problem: tsp
# expect: any-failure
# why: an integer of a thousand bits
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    t = partial_tour + removed_nodes
    t[0] = 1 << 1000
    return t
