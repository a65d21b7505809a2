# role: repair
# problem: tsp
# expect: memory
# why: a string of ten gigabytes
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = 'ab' * 5 * 10**9
    tour.extend(removed_nodes)
    return tour
