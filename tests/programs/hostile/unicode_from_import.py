# role: repair
# problem: tsp
# expect: rejected
# why: a from-import in full width
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    from numpy import ｃｔｙｐｅｓｌｉｂ
    tour.extend(removed_nodes)
    return tour
