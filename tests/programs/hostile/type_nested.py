# role: repair
# problem: tsp
# expect: any-failure
# why: each node in its own list
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [[x] for x in partial_tour + removed_nodes]
