# role: repair
# problem: tsp
# expect: any-failure
# why: a deque
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    from collections import deque
    return deque(partial_tour + removed_nodes)
