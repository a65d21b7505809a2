# role: repair
# problem: tsp
# expect: invalid
# why: the first node again at the end
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = partial_tour + removed_nodes
    return tour + tour[:1]
