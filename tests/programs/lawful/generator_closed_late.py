# role: repair
# problem: tsp
# expect: ok
# why: a suspended generator with a finally
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    def feed():
        try:
            for v in removed_nodes:
                yield v
            yield None
        finally:
            done.append(True)
    done = []
    tour = list(partial_tour)
    source = feed()
    while (v := next(source)) is not None:
        tour.append(v)
    return tour
