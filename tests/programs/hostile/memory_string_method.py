# role: repair
# problem: tsp
# expect: memory
# why: padding to ten gigabytes
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = 'a'.ljust(10**10)
    tour.extend(removed_nodes)
    return tour
