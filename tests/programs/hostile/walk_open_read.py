# role: repair
# problem: tsp
# expect: any-failure
# why: open for reading
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    open('/proc/self/status').read()
    tour.extend(removed_nodes)
    return tour
