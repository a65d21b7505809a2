# role: repair
# problem: tsp
# expect: contained
# why: nine hundred slices of a row
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = dist[0]@REPEAT 900 [:]@
    tour.extend(removed_nodes)
    return tour
