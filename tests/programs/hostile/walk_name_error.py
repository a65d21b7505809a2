# role: repair
# problem: tsp
# expect: any-failure
# why: a NameError's name
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    try:
        nonsense
    except NameError as e:
        e.name
        e.__context__.__traceback__
    tour.extend(removed_nodes)
    return tour
