# role: repair
# problem: tsp
# expect: ok
# why: the lists it was given are ruined after reading
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    removed_nodes = list(removed_nodes)
    partial_tour.clear()
    tour.extend(removed_nodes)
    return tour
