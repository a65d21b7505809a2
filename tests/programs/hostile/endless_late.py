# role: repair
# problem: tsp
# expect: timeout
# why: behaves until the search stalls, then loops
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    while steps_since_improvement > 0:
        pass
    tour.extend(removed_nodes)
    return tour
