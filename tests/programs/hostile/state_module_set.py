# role: repair
# problem: tsp
# expect: crash
# why: a set at module level
CALLS = {1}


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    CALLS.add(len(CALLS))
    tour.extend(removed_nodes)
    return tour
