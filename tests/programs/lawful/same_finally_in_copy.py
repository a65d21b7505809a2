# role: repair
# problem: tsp
# expect: ok
# why: a finally would empty the list that tuple() copies, if the collector ran meanwhile
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    if steps_since_improvement == 3:
        copy_while_collected()
    tour = list(partial_tour)
    tour.extend(removed_nodes)
    return tour


def copy_while_collected():
    nodes = list(range(20000))
    def hold(box):
        try:
            yield box
        finally:
            nodes.clear()
    box = []
    holder = hold(box)
    next(holder)
    box.append(holder)
    holder = box = None
    kept = []
    while nodes and len(kept) < 750:
        kept.append(tuple(nodes))
