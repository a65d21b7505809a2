# role: repair
# problem: tsp
# expect: any-failure
# why: the function's name bound to a number
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return partial_tour + removed_nodes


repair = 5
