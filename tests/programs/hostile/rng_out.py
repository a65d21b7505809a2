# role: repair
# problem: tsp
# expect: any-failure
# why: draws into the distances
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    rng.random(out=dist)
    rng.standard_normal(out=np.asarray(dist))
    tour.extend(removed_nodes)
    return tour
