# role: repair
# problem: tsp
# expect: any-failure
# why: digits as text
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return [str(x) for x in partial_tour + removed_nodes]
