# role: repair
# problem: tsp
# expect: any-failure
# why: tee keeps what one side has not read
import itertools


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    a, b = itertools.tee(itertools.count())
    for _ in a:
        pass
    tour.extend(removed_nodes)
    return tour
