# role: repair
# problem: tsp
# expect: contained
# why: a write to the distances, its refusal swallowed
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    try:
        dist[0][1] = 0.0
    except Exception:
        pass
    tour.extend(removed_nodes)
    return tour
