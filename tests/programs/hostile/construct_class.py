# role: repair
# problem: tsp
# expect: rejected
# why: a class
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    class Box:
        state = []
    Box.state.append(1)
    tour.extend(removed_nodes)
    return tour
