# role: repair
# problem: tsp
# expect: rejected
# why: a break outside a loop
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    break
    tour.extend(removed_nodes)
    return tour
