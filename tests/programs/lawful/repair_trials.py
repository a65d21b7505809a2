# role: repair
# problem: tsp
# expect: ok
# why: several trials keep the best
def length(dist, tour):
    return sum(dist[a][b] for a, b in zip(tour, tour[1:] + tour[:1]))

def insert_all(dist, tour, nodes):
    tour = list(tour)
    for v in nodes:
        k = min(range(len(tour)), key=lambda i: dist[tour[i - 1]][v] + dist[v][tour[i]] - dist[tour[i - 1]][tour[i]])
        tour.insert(k, v)
    return tour

def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    trials = 1 + min(3, steps_since_improvement)
    best = None
    for _ in range(trials):
        order = rng.sample(removed_nodes, len(removed_nodes))
        candidate = insert_all(dist, partial_tour, order)
        if best is None or length(dist, candidate) < length(dist, best):
            best = candidate
    return best
