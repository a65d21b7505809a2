# role: repair
# problem: tsp
# expect: invalid
# why: nodes counted from one
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [x + 1 for x in partial_tour + removed_nodes]
