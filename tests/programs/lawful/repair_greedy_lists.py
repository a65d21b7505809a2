# role: repair
# problem: tsp
# expect: ok
# why: cheapest insertion with lists
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    order = list(removed_nodes)
    rng.shuffle(order)
    for node in order:
        row = dist[node]
        best, where = float("inf"), 0
        for i in range(len(tour)):
            a, b = tour[i - 1], tour[i]
            delta = row[a] + row[b] - dist[a][b]
            if delta < best:
                best, where = delta, i
        tour.insert(where, node)
    return tour
