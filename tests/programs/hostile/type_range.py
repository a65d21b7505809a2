# role: repair
# problem: tsp
# expect: any-failure
# why: a range is neither list nor tuple
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return range(len(dist))
