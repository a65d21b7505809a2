# role: repair
# problem: tsp
# expect: any-failure
# why: the same nodes counted from the end
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [x - len(dist) for x in partial_tour + removed_nodes]
