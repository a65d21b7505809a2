# role: repair
# problem: tsp
# expect: rejected
# why: a dunder in mathematical bold
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    repair.__𝐠𝐥𝐨𝐛𝐚𝐥𝐬__['x'] = 1
    tour.extend(removed_nodes)
    return tour
