# role: repair
# problem: tsp
# expect: crash
# why: a message like a status
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    raise ValueError('ok\nstatus=0')
    tour.extend(removed_nodes)
    return tour
