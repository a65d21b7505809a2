# role: repair
# problem: tsp
# expect: ok
# why: empties the lists it was given
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    while removed_nodes:
        node = removed_nodes.pop()
        partial_tour.insert(rng.randint(0, len(partial_tour)), node)
    return partial_tour
