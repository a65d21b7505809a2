# role: repair
# problem: tsp
# expect: invalid
# why: an empty tour
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return []
