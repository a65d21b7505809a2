"""Discovered by spo-jax: run tsp-best-of-n-seed0, round 3, discovery utility J = 0.794044,
validated at 0.895195.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, current_tour, steps, rng)
    candidate = repair(dist, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. steps counts the steps since the best cost last fell. rng is a random.Random.
The file needs nothing of spo_jax; `spo solve` reads it.
"""

import math


def take_radial(dist, left, count, rng):
    seed = rng.choice(left)
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    return left[:count]


def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove 60 nodes for 5 steps after an improvement and sqrt(n) to 60 nodes at random in
    stagnation, taking the nodes nearest to a random node; while the mean edge exceeds 4 /
    sqrt(n) of the mean distance, remove the 35% of the tour nearest to one node instead."""
    n = len(current_tour)
    limit = max(1, int(0.35 * n))
    low = int(math.sqrt(n))
    high = max(low, min(limit, 60))
    size = high if steps_since_improvement < 5 else rng.randint(low, high)
    size = max(1, min(limit, size))
    length = sum([dist[a][b] for a, b in zip(current_tour, current_tour[1:])])
    rough = length * math.sqrt(n) > 4 * sum(dist[current_tour[0]])
    if rough:
        size = limit
    left = current_tour[:]
    count = size
    picked = take_radial(dist, left, count, rng)
    removed = set(picked)
    removed_nodes = [node for node in current_tour if node in removed]
    partial_tour = [node for node in current_tour if node not in removed]
    return partial_tour, removed_nodes


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert the removed nodes one at a time, the node nearest to the kept tour first, each
    at its cheapest place next to one of its cheapest edges (how many: 4 to 8 in turn with
    the steps without improvement) or a node inserted before; make several tries (8), the
    others in random order and keep the shortest."""
    follow = dict(zip(partial_tour, partial_tour[1:] + partial_tour[:1]))
    width = 4 + steps_since_improvement % 5
    near = {}
    for node in removed_nodes:
        row = dist[node]
        added = {a: row[a] + row[b] - dist[a][b] for a, b in follow.items()}
        near[node] = sorted(added, key=added.get)[:width]
    key = {}
    for node in removed_nodes:
        row = dist[node]
        key[node] = min([row[other] for other in partial_tour])
    tries = max(1, min(8, 25000 // len(removed_nodes) ** 2))
    order = sorted(removed_nodes, key=lambda node: key[node])
    best_cost = float("inf")
    for attempt in range(tries):
        if attempt > 0:
            rng.shuffle(order)
        trial = follow.copy()
        inserted = []
        total = 0.0
        for node in order:
            row = dist[node]
            cheapest = float("inf")
            for a in near[node] + inserted:
                b = trial[a]
                cost = row[a] + row[b] - dist[a][b]
                if cost < cheapest:
                    cheapest = cost
                    place = a
            trial[node] = trial[place]
            trial[place] = node
            inserted.append(node)
            total += cheapest
            if total >= best_cost:
                break
        if total < best_cost:
            best_cost = total
            best = trial
    complete_tour = [partial_tour[0]]
    while len(complete_tour) < len(best):
        complete_tour.append(best[complete_tour[-1]])
    return complete_tour
