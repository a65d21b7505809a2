# role: repair
# problem: tsp
# expect: any-failure
# why: 3.0 for node 3
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [float(x) for x in partial_tour + removed_nodes]
