# role: repair
# problem: tsp
# expect: any-failure
# why: replaces a row
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    dist[0] = [0.0] * len(dist)
    tour.extend(removed_nodes)
    return tour
