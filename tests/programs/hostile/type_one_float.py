# role: repair
# problem: tsp
# expect: any-failure
# why: a single float
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    t = partial_tour + removed_nodes
    t[3] = float(t[3])
    return t
