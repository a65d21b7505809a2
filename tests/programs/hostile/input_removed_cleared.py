# role: repair
# problem: tsp
# expect: invalid
# why: empties what it should insert
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    removed_nodes.clear()
    return partial_tour
