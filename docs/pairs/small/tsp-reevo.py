"""Discovered by spo-jax: run tsp-reevo-seed0, round 15, discovery utility J = 0.793800,
validated at 0.895260.

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
    """Remove 60 nodes for 3 steps after an improvement and 6% of the tour to 60 nodes at
    random in stagnation, taking strings of 3 growing to 6 by one every 30 steps without
    improvement consecutive nodes through the tour near a random node; while the mean edge
    exceeds 4 / sqrt(n) of the mean distance, remove the 35% of the tour nearest to one
    node instead."""
    n = len(current_tour)
    limit = max(1, int(0.35 * n))
    low = int(0.06 * n)
    high = max(low, min(limit, 60))
    size = high if steps_since_improvement < 3 else rng.randint(low, high)
    size = max(1, min(limit, size))
    length = sum([dist[a][b] for a, b in zip(current_tour, current_tour[1:])])
    rough = length * math.sqrt(n) > 4 * sum(dist[current_tour[0]])
    if rough:
        size = limit
    left = current_tour[:]
    count = size
    if rough:
        picked = take_radial(dist, left, count, rng)
    else:
        seed = rng.choice(left)
        row = dist[seed]
        chosen = {}
        for node in sorted(left, key=lambda node: row[node]):
            if node not in chosen:
                string = min(6, 3 + steps_since_improvement // 30)
                start = left.index(node) - rng.randrange(string)
                for i in range(string):
                    chosen[left[(start + i) % len(left)]] = True
            if len(chosen) >= count:
                break
        picked = list(chosen)[:count]
    removed = set(picked)
    removed_nodes = [node for node in current_tour if node in removed]
    partial_tour = [node for node in current_tour if node not in removed]
    return partial_tour, removed_nodes


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Split the removed nodes into groups that compete for the same edges and insert each
    group one node at a time, in random order, each at its cheapest place next to one of
    its cheapest edges (how many: 5) or a node inserted before; make several tries (8) and
    keep the shortest for each group."""
    follow = dict(zip(partial_tour, partial_tour[1:] + partial_tour[:1]))
    stops = np.array(partial_tour + partial_tour[:1])
    lengths = np.array([dist[a][b] for a, b in follow.items()])
    near = {}
    for node in removed_nodes:
        to = np.array(dist[node])[stops]
        ranked = np.argsort(to[:-1] + to[1:] - lengths)
        near[node] = stops[ranked[:5]].tolist()
    tries = max(1, min(8, 20000 // len(removed_nodes) ** 2))
    best = follow
    waiting = removed_nodes[:]
    while waiting:
        group = [waiting.pop()]
        for member in group:
            edges = set(near[member])
            group += [node for node in waiting if not edges.isdisjoint(near[node])]
            waiting = [node for node in waiting if node not in group]
        start = best
        order = group[:]
        best_cost = float("inf")
        for attempt in range(tries):
            rng.shuffle(order)
            trial = start.copy()
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
