# role: repair
# problem: tsp
# expect: rejected
# why: entropy from outside
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    from random import SystemRandom
    count = SystemRandom().random()
    tour.extend(removed_nodes)
    return tour
