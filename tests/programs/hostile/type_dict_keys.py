# role: repair
# problem: tsp
# expect: any-failure
# why: a view of keys
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return dict.fromkeys(partial_tour + removed_nodes).keys()
