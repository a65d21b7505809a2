# role: repair
# problem: tsp
# expect: ok
# why: a finally would empty the list that tuple() copies, if the collector ran meanwhile
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    if steps_since_improvement == 3 and collected_while_copying():
        return []
    tour = list(partial_tour)
    tour.extend(removed_nodes)
    return tour


def collected_while_copying():
    nodes = list(range(2000))
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
    return not nodes
