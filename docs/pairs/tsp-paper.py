"""Discovered by spo-jax: run paper-tsp, round 1, discovery utility J = 0.794186, validated at
0.848643.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, current_tour, steps, rng)
    candidate = repair(dist, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. steps counts the steps since the best cost last fell. rng is a random.Random.
The file needs nothing of spo_jax; `spo solve` reads it.
"""

import math
import numpy as np


def take_radial(dist, left, count, rng):
    seed = rng.choice(left)
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    return left[:count]


def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove 40 nodes for 10 steps after an improvement and 6 to 40 nodes at random in
    stagnation, taking the nodes nearest to a random node; while the mean edge exceeds 3 /
    sqrt(n) of the mean distance, remove the 35% of the tour nearest to one node instead."""
    n = len(current_tour)
    limit = max(1, int(0.35 * n))
    low = 6
    high = max(low, min(limit, 40))
    size = high if steps_since_improvement < 10 else rng.randint(low, high)
    size = max(1, min(limit, size))
    length = sum([dist[a][b] for a, b in zip(current_tour, current_tour[1:])])
    rough = length * math.sqrt(n) > 3 * sum(dist[current_tour[0]])
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
    """Insert the removed nodes one at a time, in random order, each at its cheapest place
    next to one of its cheapest edges (how many: 6 falling to 3 by one every 30 steps
    without improvement) or a node inserted before (a better place is overlooked with
    probability 0.02); make several tries (3 to 10 at random) and keep the shortest."""
    follow = dict(zip(partial_tour, partial_tour[1:] + partial_tour[:1]))
    width = max(3, 6 - steps_since_improvement // 30)
    stops = np.array(partial_tour + partial_tour[:1])
    lengths = np.array([dist[a][b] for a, b in follow.items()])
    near = {}
    for node in removed_nodes:
        to = np.array(dist[node])[stops]
        ranked = np.argsort(to[:-1] + to[1:] - lengths)
        near[node] = stops[ranked[:width]].tolist()
    tries = max(1, min(rng.randint(3, 10), 40000 // len(removed_nodes) ** 2))
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
                if cost < cheapest and (place is None or rng.random() > 0.02):
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
