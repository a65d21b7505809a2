# role: repair
# problem: tsp
# expect: rejected
# why: processes
# reason: multiprocessing
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    from multiprocessing import Process
    Process(target=print).start()
    tour.extend(removed_nodes)
    return tour
