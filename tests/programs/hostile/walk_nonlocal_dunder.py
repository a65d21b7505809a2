# role: repair
# problem: tsp
# expect: rejected
# why: nonlocal of a dunder name
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    __class__ = 1
    def f():
        nonlocal __class__
        __class__ = 2
    f()
    tour.extend(removed_nodes)
    return tour
