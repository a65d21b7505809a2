"""The trivial design for the TSP: random removal, and each node at its cheapest place."""


def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove a tenth of the nodes, drawn uniformly."""
    n = len(current_tour)
    removed_nodes = rng.sample(current_tour, max(1, n // 10))
    gone = set(removed_nodes)
    partial_tour = [node for node in current_tour if node not in gone]
    return partial_tour, removed_nodes


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert the nodes in random order, each at its cheapest place."""
    tour = list(partial_tour)
    for node in rng.sample(removed_nodes, len(removed_nodes)):
        row = dist[node]
        best_place, best_added = 0, float("inf")
        for place in range(len(tour)):
            before, after = tour[place - 1], tour[place]
            added = row[before] + row[after] - dist[before][after]
            if added < best_added:
                best_place, best_added = place, added
        tour.insert(best_place, node)
    return tour
