# role: repair
# problem: tsp
# expect: rejected
# why: writes to every descriptor by the system
# reason: os
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    import os
    for fd in range(3, 64):
        os.write(fd, b'\x00' * 64)
    tour.extend(removed_nodes)
    return tour
