# role: repair
# problem: tsp
# expect: any-failure
# why: text of a nest that doubles
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    x = [0]
    for _ in range(40):
        x = [x, x]
    len(str(x))
    tour.extend(removed_nodes)
    return tour
