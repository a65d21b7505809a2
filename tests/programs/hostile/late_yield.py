# role: repair
# problem: tsp
# expect: contained
# why: a finaliser that yields again
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    box = []
    def hold():
        try:
            yield box
        finally:
            yield 1
    holder = hold()
    next(holder)
    box.append(holder)
    junk = [[] for _ in range(3000)]
    tour.extend(removed_nodes)
    return tour
