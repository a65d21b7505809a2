# role: repair
# problem: tsp
# expect: rejected
# why: a partial built at module level
import functools
grow = functools.partial(list.append, [])


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    grow(1)
    tour.extend(removed_nodes)
    return tour
