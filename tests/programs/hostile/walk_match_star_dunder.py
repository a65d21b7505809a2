# role: repair
# problem: tsp
# expect: rejected
# why: a star capture bound to a dunder name
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    match tour:
        case [*__builtins__]:
            pass
    tour.extend(removed_nodes)
    return tour
