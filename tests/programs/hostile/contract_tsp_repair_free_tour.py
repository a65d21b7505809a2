# role: repair
# problem: tsp
# expect: invalid
# why: claims one node as the whole tour
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [0] * len(dist)
