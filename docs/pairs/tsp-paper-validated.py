"""Discovered by spo-jax: run paper-tsp, round 10, discovery utility J = 0.794186, validated at
0.849191.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, current_tour, steps, rng)
    candidate = repair(dist, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. steps counts the steps since the best cost last fell. rng is a random.Random.
The file needs nothing of spo_jax; `spo solve` reads it.
"""

import math
import numpy as np


def take_corridor(dist, left, count, steps_since_improvement, rng):
    shift = 17 * steps_since_improvement + rng.randrange(17)
    seed = left[shift % len(left)]
    row = dist[seed]
    end = rng.choice(left)
    far = dist[end]
    left.sort(key=lambda node: row[node] + far[node])
    return left[:count]


def take_segment(dist, left, count, steps_since_improvement, rng):
    shift = 17 * steps_since_improvement + rng.randrange(17)
    seed = left[shift % len(left)]
    start = left.index(seed) - count // 2
    return [left[(start + i) % len(left)] for i in range(count)]


def take_radial(dist, left, count, steps_since_improvement, rng):
    shift = 17 * steps_since_improvement + rng.randrange(17)
    seed = left[shift % len(left)]
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    return left[:count]


def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove 60 nodes for 10 steps after an improvement and 10% of the tour to 60 nodes at
    random in stagnation, taking the nodes closest to the line from a seed that moves 17
    places along the tour with every step without improvement to another random node, or
    once 10 steps have passed without improvement a stretch of consecutive nodes around a
    seed that moves 17 places along the tour with every step without improvement; while
    the mean edge exceeds 3 / sqrt(n) of the mean distance, remove the 35% of the tour
    nearest to one node instead."""
    n = len(current_tour)
    limit = max(1, int(0.35 * n))
    low = int(0.1 * n)
    high = max(low, min(limit, 60))
    size = high if steps_since_improvement < 10 else rng.randint(low, high)
    size = max(1, min(limit, size))
    length = sum([dist[a][b] for a, b in zip(current_tour, current_tour[1:])])
    rough = length * math.sqrt(n) > 3 * sum(dist[current_tour[0]])
    if rough:
        size = limit
    left = current_tour[:]
    count = size
    if rough:
        picked = take_radial(dist, left, count, steps_since_improvement, rng)
    elif steps_since_improvement < 10:
        picked = take_corridor(dist, left, count, steps_since_improvement, rng)
    else:
        picked = take_segment(dist, left, count, steps_since_improvement, rng)
    removed = set(picked)
    removed_nodes = [node for node in current_tour if node in removed]
    partial_tour = [node for node in current_tour if node not in removed]
    return partial_tour, removed_nodes


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert the removed nodes one at a time, in random order, each at its cheapest place
    next to one of its cheapest edges (how many: 3 growing to 6 by one every 2 steps
    without improvement) or a node inserted before; make several tries (10) and keep the
    shortest."""
    follow = dict(zip(partial_tour, partial_tour[1:] + partial_tour[:1]))
    width = min(6, 3 + steps_since_improvement // 2)
    stops = np.array(partial_tour + partial_tour[:1])
    lengths = np.array([dist[a][b] for a, b in follow.items()])
    near = {}
    for node in removed_nodes:
        to = np.array(dist[node])[stops]
        ranked = np.argsort(to[:-1] + to[1:] - lengths)
        near[node] = stops[ranked[:width]].tolist()
    tries = max(1, min(10, 20000 // len(removed_nodes) ** 2))
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
