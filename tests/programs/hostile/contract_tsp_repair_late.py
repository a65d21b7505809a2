# role: repair
# problem: tsp
# expect: invalid
# why: lawful until the search stalls, then loses a node
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = partial_tour + removed_nodes
    return tour if steps_since_improvement == 0 else tour[:-1]
