# role: repair
# problem: tsp
# expect: ok
# why: the same cycle walked the other way
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = partial_tour + removed_nodes
    return tour[::-1] if rng.random() < 0.5 else tour[3:] + tour[:3]
