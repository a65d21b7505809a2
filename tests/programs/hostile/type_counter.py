# role: repair
# problem: tsp
# expect: any-failure
# why: a Counter
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    from collections import Counter
    return Counter(partial_tour + removed_nodes)
