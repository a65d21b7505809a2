"""The operators that G-LNS begins with on the TSP: three destroys and two repairs, all simple."""


def destroy_random(dist, current_tour, steps_since_improvement, rng):
    """Remove a fifth of the nodes, drawn uniformly."""
    n = len(current_tour)
    removed_nodes = rng.sample(current_tour, max(1, n // 5))
    gone = set(removed_nodes)
    return [node for node in current_tour if node not in gone], removed_nodes


def destroy_longest(dist, current_tour, steps_since_improvement, rng):
    """Remove the nodes from which the longest edges of the tour start, a fifth of all."""
    n = len(current_tour)
    lengths = [dist[current_tour[k - 1]][current_tour[k]] for k in range(n)]
    places = sorted(range(n), key=lambda place: -lengths[(place + 1) % n])[: max(1, n // 5)]
    removed_nodes = [current_tour[place] for place in sorted(places, reverse=True)]
    gone = set(removed_nodes)
    return [node for node in current_tour if node not in gone], removed_nodes


def destroy_segment(dist, current_tour, steps_since_improvement, rng):
    """Remove a fifth of the nodes, which follow each other in the list."""
    n = len(current_tour)
    count = max(1, n // 5)
    first = rng.randint(0, n - count)
    removed_nodes = current_tour[first : first + count][::-1]
    return current_tour[:first] + current_tour[first + count :], removed_nodes


def repair_random(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert each node at a place that is drawn uniformly."""
    tour = list(partial_tour)
    for node in removed_nodes:
        tour.insert(rng.randint(0, len(tour)), node)
    return tour


def repair_cheapest(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert each node in its turn where it makes the tour longer by the least."""
    tour = list(partial_tour)
    for node in removed_nodes:
        row = dist[node]
        best_place, best_added = 0, float("inf")
        for place in range(len(tour)):
            before, after = tour[place - 1], tour[place]
            added = row[before] + row[after] - dist[before][after]
            if added < best_added:
                best_place, best_added = place, added
        tour.insert(best_place, node)
    return tour
