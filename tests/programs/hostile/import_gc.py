# role: repair
# problem: tsp
# expect: rejected
# why: all live objects
# reason: gc
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    import gc
    len(gc.get_objects())
    tour.extend(removed_nodes)
    return tour
