# role: repair
# problem: tsp
# expect: any-failure
# why: memory errors swallowed in a loop
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = []
    while True:
        try:
            while True:
                x.append([0] * 10**6)
        except MemoryError:
            pass
    tour.extend(removed_nodes)
    return tour
