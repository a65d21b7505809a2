# role: repair
# problem: tsp
# expect: ok
# why: clears its inputs after building the answer
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    tour.extend(removed_nodes)
    partial_tour.clear()
    removed_nodes[:] = [-1]
    return tour
