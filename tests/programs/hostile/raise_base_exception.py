# role: repair
# problem: tsp
# expect: any-failure
# why: BaseException
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    raise BaseException('x')
    tour.extend(removed_nodes)
    return tour
