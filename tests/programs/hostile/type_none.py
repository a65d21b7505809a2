# role: repair
# problem: tsp
# expect: any-failure
# why: nothing
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return None
