# role: repair
# problem: tsp
# expect: crash
# why: terminal control codes in the message
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    raise ValueError('\x1b[2J\x07\r\n\x00' * 100)
    tour.extend(removed_nodes)
    return tour
