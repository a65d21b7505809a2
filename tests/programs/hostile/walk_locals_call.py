# role: repair
# problem: tsp
# expect: any-failure
# why: locals()
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    locals()['tour'].append(0)
    locals()['tour'].pop()
    tour.extend(removed_nodes)
    return tour
