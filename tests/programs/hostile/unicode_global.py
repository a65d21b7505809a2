# role: repair
# problem: tsp
# expect: rejected
# why: a global statement in full width
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    global ｓｔａｔｅ
    state = 1
    tour.extend(removed_nodes)
    return tour
