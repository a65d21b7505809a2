# role: repair
# problem: tsp
# expect: crash
# why: text of a deeply nested list
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    a = []
    for _ in range(10**5):
        a = [a]
    repr(a)
    tour.extend(removed_nodes)
    return tour
