# role: repair
# problem: tsp
# expect: ok
# why: a linked list in a dictionary
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    after = {a: b for a, b in zip(partial_tour, partial_tour[1:] + partial_tour[:1])}
    for v in removed_nodes:
        a = min(after, key=lambda x: (dist[x][v] + dist[v][after[x]] - dist[x][after[x]], x))
        after[v], after[a] = after[a], v
    tour, node = [], partial_tour[0]
    while True:
        tour.append(node)
        node = after[node]
        if node == partial_tour[0]:
            break
    return tour
