"""Discovered by spo-jax: run tsp-g-lns-seed0, round 13, discovery utility J = 0.794127,
validated at 0.895446.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, current_tour, steps, rng)
    candidate = repair(dist, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. steps counts the steps since the best cost last fell. rng is a random.Random.
The file needs nothing of spo_jax; `spo solve` reads it.
"""

import math


def take_string(dist, left, count, rng):
    spots = [rng.randrange(len(left)) for _ in range(8)]
    seed = left[max(spots, key=lambda i: dist[left[i - 1]][left[i]])]
    row = dist[seed]
    chosen = {}
    for node in sorted(left, key=lambda node: row[node]):
        if node not in chosen:
            string = rng.randint(1, 10)
            start = left.index(node) - rng.randrange(string)
            for i in range(string):
                chosen[left[(start + i) % len(left)]] = True
        if len(chosen) >= count:
            break
    return list(chosen)[:count]


def take_radial(dist, left, count, rng):
    spots = [rng.randrange(len(left)) for _ in range(8)]
    seed = left[max(spots, key=lambda i: dist[left[i - 1]][left[i]])]
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    return left[:count]


def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove 60 nodes for 2 steps after an improvement and 10 to 60 nodes at random in
    stagnation, taking strings of 1 to 10 at random consecutive nodes through the tour
    near the end of the longest of 8 random tour edges, or ever more often as stagnation
    passes 20 steps the nodes nearest to the end of the longest of 8 random tour edges;
    while the mean edge exceeds 3 / sqrt(n) of the mean distance, remove the 35% of the
    tour nearest to one node instead."""
    n = len(current_tour)
    limit = max(1, int(0.35 * n))
    low = 10
    high = max(low, min(limit, 60))
    size = high if steps_since_improvement < 2 else rng.randint(low, high)
    size = max(1, min(limit, size))
    length = sum([dist[a][b] for a, b in zip(current_tour, current_tour[1:])])
    rough = length * math.sqrt(n) > 3 * sum(dist[current_tour[0]])
    if rough:
        size = limit
    left = current_tour[:]
    count = size
    if rough:
        picked = take_radial(dist, left, count, rng)
    elif rng.random() * (steps_since_improvement + 20) < 20:
        picked = take_string(dist, left, count, rng)
    else:
        picked = take_radial(dist, left, count, rng)
    removed = set(picked)
    removed_nodes = [node for node in current_tour if node in removed]
    partial_tour = [node for node in current_tour if node not in removed]
    return partial_tour, removed_nodes


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert the removed nodes one at a time, in random order, each at its cheapest place
    next to one of its cheapest edges (how many: 8) or a node inserted before (a better
    place is overlooked with probability 0.02); make several tries (10) and keep the
    shortest."""
    follow = dict(zip(partial_tour, partial_tour[1:] + partial_tour[:1]))
    near = {}
    for node in removed_nodes:
        row = dist[node]
        added = {a: row[a] + row[b] - dist[a][b] for a, b in follow.items()}
        near[node] = sorted(added, key=added.get)[:8]
    tries = max(1, min(10, 40000 // len(removed_nodes) ** 2))
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
