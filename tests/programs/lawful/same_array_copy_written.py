# role: repair
# problem: tsp
# expect: ok
# why: an own copy of the distances is written
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    import numpy as np
    own = np.array(dist)
    own[:] = 0
    own2 = [list(row) for row in dist]
    own2[0][1] = -1.0
    own.fill(7)
    tour.extend(removed_nodes)
    return tour
