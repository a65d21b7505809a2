# role: repair
# problem: tsp
# expect: rejected
# why: a closure's cell
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    def f():
        return tour
    f.__closure__[0].cell_contents = []
    tour.extend(removed_nodes)
    return tour
