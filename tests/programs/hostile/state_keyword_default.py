# role: repair
# problem: tsp
# expect: rejected
# why: a mutable keyword-only default
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng, *, memory=set()):
    memory.add(1)
    return partial_tour + removed_nodes
