# role: repair
# problem: tsp
# expect: timeout
# why: a bare except around an endless loop
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    while True:
        try:
            for i in range(10**9):
                pass
        except:
            continue
    tour.extend(removed_nodes)
    return tour
