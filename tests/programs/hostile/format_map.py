# role: repair
# problem: tsp
# expect: rejected
# why: format_map reaches attributes
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    '{a.__class__}'.format_map({'a': tour})
    tour.extend(removed_nodes)
    return tour
