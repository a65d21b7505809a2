"""Discovered by spo-jax: run tsp-spo-seed0, round 1, discovery utility J = 0.793725, validated
at 0.895197.

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
    """Remove 50 nodes right after an improvement and 1.5 sqrt(n) to 50 nodes at random in
    stagnation, taking separate regions (how many: 1 growing to 3 by one every 20 steps
    without improvement), each of the nodes nearest to a random node; while the mean edge
    exceeds 2 / sqrt(n) of the mean distance, remove the 35% of the tour nearest to one
    node instead."""
    n = len(current_tour)
    limit = max(1, int(0.35 * n))
    low = int(1.5 * math.sqrt(n))
    high = max(low, min(limit, 50))
    size = high if steps_since_improvement < 1 else rng.randint(low, high)
    size = max(1, min(limit, size))
    regions = min(3, 1 + steps_since_improvement // 20)
    share = max(1, -(-size // regions))
    length = sum([dist[a][b] for a, b in zip(current_tour, current_tour[1:])])
    rough = length * math.sqrt(n) > 2 * sum(dist[current_tour[0]])
    if rough:
        size = share = limit
    removed = set()
    while len(removed) < size:
        left = [node for node in current_tour if node not in removed]
        count = min(share, size - len(removed))
        picked = take_radial(dist, left, count, rng)
        removed.update(picked)
    removed_nodes = [node for node in current_tour if node in removed]
    partial_tour = [node for node in current_tour if node not in removed]
    return partial_tour, removed_nodes


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert the removed nodes one at a time, in random order, each at its cheapest place
    next to one of its cheapest edges (how many: 4) or a node inserted before (a better
    place is overlooked with probability 0.01); make several tries (8) and keep the
    shortest."""
    follow = dict(zip(partial_tour, partial_tour[1:] + partial_tour[:1]))
    near = {}
    for node in removed_nodes:
        row = dist[node]
        added = {a: row[a] + row[b] - dist[a][b] for a, b in follow.items()}
        near[node] = sorted(added, key=added.get)[:4]
    tries = max(1, min(8, 60000 // len(removed_nodes) ** 2))
    order = removed_nodes[:]
    best_cost = float("inf")
    for attempt in range(tries):
        rng.shuffle(order)
        trial = follow.copy()
        inserted = []
        total = 0.0
        for node in order:
            row = dist[node]
            cheapest = float("inf")
            place = None
            for a in near[node] + inserted:
                b = trial[a]
                cost = row[a] + row[b] - dist[a][b]
                if cost < cheapest and (place is None or rng.random() > 0.01):
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
