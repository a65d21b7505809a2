# role: repair
# problem: tsp
# expect: any-failure
# why: a sample of an endless range
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    rng.sample(range(10**12), 10**11)
    tour.extend(removed_nodes)
    return tour
