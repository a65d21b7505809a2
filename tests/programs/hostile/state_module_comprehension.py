# role: repair
# problem: tsp
# expect: rejected
# why: a comprehension at module level
SIZES = [x for x in range(10)]


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    SIZES[0]
    tour.extend(removed_nodes)
    return tour
