# role: repair
# problem: tsp
# expect: any-failure
# why: a list bound by a walrus in a variable's annotation
X: (CALLS := []) = 1


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    CALLS.append(1)
    tour.extend(removed_nodes)
    return tour
