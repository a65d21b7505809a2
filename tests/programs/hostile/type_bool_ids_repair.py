# role: repair
# problem: tsp
# expect: any-failure
# why: False for node 0
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [False if x == 0 else x for x in partial_tour + removed_nodes]
