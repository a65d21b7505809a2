# role: repair
# problem: tsp
# expect: unstable
# why: the address in the text of a function must not change a result
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    digits = repr(lambda: 0).split("0x")[-1].strip(">")
    for v in removed_nodes:
        tour.insert(int(digits, 16) // 16 % len(tour), v)
    return tour
