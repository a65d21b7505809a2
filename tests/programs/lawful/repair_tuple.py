# role: repair
# problem: tsp
# expect: ok
# why: a tuple returned
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return (*partial_tour, *sorted(removed_nodes, key=lambda v: dist[partial_tour[-1]][v]))
