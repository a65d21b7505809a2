# role: repair
# problem: tsp
# expect: invalid
# why: nothing inserted
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return partial_tour
