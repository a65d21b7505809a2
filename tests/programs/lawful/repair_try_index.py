# role: repair
# problem: tsp
# expect: ok
# why: exceptions as control flow
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    for v in removed_nodes:
        try:
            i = tour.index(v - 1)
        except ValueError:
            i = -1
        tour.insert(i + 1, v)
    try:
        tour.index(10**6)
        raise KeyError(3)
    except (ValueError, KeyError):
        return tour
