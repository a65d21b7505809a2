# role: repair
# problem: tsp
# expect: contained
# why: a finaliser puts texts into the tour after it was checked
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = partial_tour + removed_nodes
    box = []
    def hold():
        try:
            yield box
        finally:
            tour[:] = ['x'] * len(tour)
    holder = hold()
    next(holder)
    box.append(holder)
    junk = [[] for _ in range(3000)]
    return tour
