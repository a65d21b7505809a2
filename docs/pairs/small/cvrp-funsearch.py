"""Discovered by spo-jax: run cvrp-funsearch-seed0, round 11, discovery utility J = 0.701006,
validated at 0.785476.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. steps counts the
steps since the best cost last fell. rng is a random.Random. The file needs nothing of spo_jax;
`spo solve` reads it.
"""

import math


def take_string(dist, routes, count, steps_since_improvement, rng):
    home = {node: r for r, route in enumerate(routes) for node in route}
    left = list(home)
    seed = max(rng.choices(left, k=3), key=lambda node: dist[0][node])
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    chosen, cut = [], set()
    for node in left:
        if home[node] in cut:
            continue
        cut.add(home[node])
        route = routes[home[node]]
        where = route.index(node)
        length = min(min(8, 4 + steps_since_improvement // 50), len(route), count - len(chosen))
        gap = min(5, len(route) - length) if rng.random() < 0.5 else 0
        window = length + gap
        start = rng.randint(max(0, where - window + 1), min(where, len(route) - window))
        split = rng.randint(1, length)
        chosen += route[start : start + split]
        chosen += route[start + split + gap : start + window]
        if len(chosen) >= count:
            break
    return chosen


def find_place(dist, route, node):
    row = dist[node]
    cheapest, place, before = float("inf"), 0, 0
    for i, after in enumerate((*route, 0)):
        cost = row[before] + row[after] - dist[before][after]
        if cost < cheapest:
            cheapest, place = cost, i
        before = after
    return cheapest, place


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    """Remove 1.5 sqrt(n) after an improvement, growing to 2 sqrt(n) over 10 steps without
    improvement, taking strings of consecutive stops (length 4 growing to 8 by one every
    50 steps without improvement) through the routes around the one of 3 random customers
    that is farthest from the depot, half of them with up to 5 stops kept inside."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = int(1.5 * math.sqrt(n))
    high = max(low, min(limit, int(2 * math.sqrt(n))))
    size = low + (high - low) * min(steps_since_improvement, 10) // 10
    size = max(1, min(limit, size))
    routes = [route for route in current_routes if route]
    count = size
    picked = take_string(dist, routes, count, steps_since_improvement, rng)
    removed = set(picked)
    left = [node for route in current_routes for node in route]
    removed_customers = [node for node in left if node in removed]
    partial_routes = []
    for route in current_routes:
        partial_routes.append([node for node in route if node not in removed])
    return partial_routes, removed_customers


def repair(dist, demands, capacity, partial_routes, removed_customers,
           steps_since_improvement, rng):
    """Insert next the removed customer with the largest gap between its two cheapest routes
    at its cheapest feasible place; open a new route where that is cheaper."""
    routes = [tuple(route) for route in partial_routes if route]
    room = [capacity - sum(demands[node] for node in route) for route in routes]
    trial, left = [*routes, ()], [*room, capacity]
    waiting = {node: {} for node in removed_customers}
    changed = range(len(trial))
    while waiting:
        highest = -float("inf")
        for node, places in waiting.items():
            for r in changed:
                route = trial[r]
                places.pop(r, None)
                if left[r] < demands[node]:
                    continue
                places[r] = find_place(dist, route, node)
            costs = sorted([cost for cost, place in places.values()] + 1 * [2 * dist[0][node]])
            score = costs[1] - costs[0]
            if score > highest:
                highest, chosen = score, node
        places = waiting.pop(chosen)
        r = min(places, key=places.get)
        cost, at = places[r]
        route = trial[r]
        trial[r] = (*route[:at], chosen, *route[at:])
        left[r] -= demands[chosen]
        changed = [r]
        if not route:
            trial.append(())
            left.append(capacity)
            changed.append(r + 1)
    return [list(route) for route in trial if route]
