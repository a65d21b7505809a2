# role: repair
# problem: tsp
# expect: any-failure
# why: a deep copy of the generator foresees its draws
import copy


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    ahead = copy.deepcopy(rng)
    for name in range(3):
        assert ahead.gauss(0.0, 1.0) == rng.gauss(0.0, 1.0), 'not foreseen'
    tour.extend(removed_nodes)
    return tour
