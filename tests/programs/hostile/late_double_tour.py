# role: repair
# problem: tsp
# expect: contained
# why: a finaliser makes the tour one node repeated after it was checked
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = partial_tour + removed_nodes
    box = []
    def hold():
        try:
            yield box
        finally:
            tour[:] = [tour[0]] * len(tour)
    holder = hold()
    next(holder)
    box.append(holder)
    junk = [[] for _ in range(3000)]
    return tour
