# role: repair
# problem: tsp
# expect: rejected
# why: the harness's frame through a traceback
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    try:
        1 / 0
    except ZeroDivisionError as e:
        e.__traceback__.tb_frame.f_back.f_locals.clear()
    tour.extend(removed_nodes)
    return tour
