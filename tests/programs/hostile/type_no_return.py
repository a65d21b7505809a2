# role: repair
# problem: tsp
# expect: any-failure
# why: no return statement
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = partial_tour + removed_nodes
