# role: repair
# problem: tsp
# expect: contained
# why: a flushed print
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    print('0 0 0 0', flush=True)
    tour.extend(removed_nodes)
    return tour
