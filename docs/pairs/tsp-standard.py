"""Discovered by spo-jax: run tsp, round 7, discovery utility J = 0.793903, validated at
0.895368.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, current_tour, steps, rng)
    candidate = repair(dist, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. steps counts the steps since the best cost last fell. rng is a random.Random.
The file needs nothing of spo_jax; `spo solve` reads it.
"""

import math
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove 4 sqrt(n) nodes for 3 steps after an improvement and 1.5 sqrt(n) to 4 sqrt(n)
    nodes at random in stagnation, taking the nodes nearest to the end of the longest of 2
    random tour edges."""
    n = len(current_tour)
    limit = max(1, int(0.35 * n))
    low = int(1.5 * math.sqrt(n))
    high = max(low, min(limit, int(4 * math.sqrt(n))))
    size = high if steps_since_improvement < 3 else rng.randint(low, high)
    size = max(1, min(limit, size))
    left = current_tour[:]
    count = size
    spots = [rng.randrange(len(left)) for _ in range(2)]
    seed = left[max(spots, key=lambda i: dist[left[i - 1]][left[i]])]
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    picked = left[:count]
    removed = set(picked)
    removed_nodes = [node for node in current_tour if node in removed]
    partial_tour = [node for node in current_tour if node not in removed]
    return partial_tour, removed_nodes


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert the removed nodes one at a time, in random order, each at its cheapest place
    next to one of its cheapest edges (how many: 3 to 6 at random) or a node inserted
    before (a better place is overlooked with probability 0.01); make several tries (8)
    and keep the shortest."""
    follow = dict(zip(partial_tour, partial_tour[1:] + partial_tour[:1]))
    width = rng.randint(3, 6)
    stops = np.array(partial_tour + partial_tour[:1])
    lengths = np.array([dist[a][b] for a, b in follow.items()])
    near = {}
    for node in removed_nodes:
        to = np.array(dist[node])[stops]
        ranked = np.argsort(to[:-1] + to[1:] - lengths)
        near[node] = stops[ranked[:width]].tolist()
    tries = max(1, min(8, 40000 // len(removed_nodes) ** 2))
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
