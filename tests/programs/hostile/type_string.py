# role: repair
# problem: tsp
# expect: any-failure
# why: a string
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return ' '.join(str(x) for x in partial_tour + removed_nodes)
