# role: repair
# problem: tsp
# expect: rejected
# why: state in a module
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    import math
    math.pi = 3
    tour.extend(removed_nodes)
    return tour
