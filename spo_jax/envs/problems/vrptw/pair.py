"""Discovered by spo-jax: run vrptw-quick, round 3 (D3.02 with R3.13), discovery utility J =
0.591609.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, ready, due, service, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, ready, due, service, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. ready[i] is when
service at node i can begin at the earliest. due[i] is when it must have begun; due[0] is when
the depot closes. service[i] is how long service at node i takes. steps counts the steps since
the best cost last fell. rng is a random.Random. The file needs nothing of spo_jax; `spo solve`
reads it.
"""

import math


def take_timely(dist, ready, due, routes, count, rng):
    left = [node for route in routes for node in route]
    seed = rng.choice(left)
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    left = left[: 2 * count]
    middle = ready[seed] + due[seed]
    left.sort(key=lambda node: abs(ready[node] + due[node] - middle))
    return left[:count]


def take_string(dist, routes, count, rng):
    home = {node: r for r, route in enumerate(routes) for node in route}
    left = list(home)
    seed = rng.choice(left)
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    chosen, cut = [], set()
    for node in left:
        if home[node] in cut:
            continue
        cut.add(home[node])
        route = routes[home[node]]
        where = route.index(node)
        length = min(rng.randint(3, 10), len(route), count - len(chosen))
        gap = min(5, len(route) - length) if rng.random() < 0.5 else 0
        window = length + gap
        start = rng.randint(max(0, where - window + 1), min(where, len(route) - window))
        split = rng.randint(1, length)
        chosen += route[start : start + split]
        chosen += route[start + split + gap : start + window]
        if len(chosen) >= count:
            break
    return chosen


def legs_of(dist, ready, due, service, route):
    latest, ends = due[0], []
    for node, after in zip(route[::-1], (0, *route[:0:-1])):
        ends.append(latest)
        latest = min(due[node], latest - dist[node][after] - service[node])
    ends.append(latest)
    legs, before, leaves = [], 0, ready[0]
    for after in (*route, 0):
        length = dist[before][after]
        legs.append((before, after, length, leaves, ends.pop()))
        leaves = max(leaves + length, ready[after]) + service[after]
        before = after
    return legs


def find_place(dist, ready, due, service, legs, route, node):
    if route not in legs:
        legs[route] = legs_of(dist, ready, due, service, route)
    row, opens, closes, stay = dist[node], ready[node], due[node], service[node]
    cheapest, place = float("inf"), 0
    for i, (before, after, length, leaves, latest) in enumerate(legs[route]):
        begins = leaves + row[before]
        if begins > closes:
            break
        cost = row[before] + row[after] - length
        if cost < cheapest and max(begins, opens) + stay + row[after] <= latest:
            cheapest, place = cost, i
    return cheapest, place


def destroy(dist, demands, capacity, ready, due, service, current_routes,
            steps_since_improvement, rng):
    """Remove 3 sqrt(n) for 2 steps after an improvement and 8 to 3 sqrt(n) at random in
    stagnation, taking separate regions of at most 15, each of the customers whose time
    windows lie closest to that of a random customer, among the 2 times as many nearest to
    it, or with probability 0.2 strings of consecutive stops (length 3 to 10 at random)
    through the routes around a random customer, half of them with up to 5 stops kept
    inside."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = 8
    high = max(low, min(limit, int(3 * math.sqrt(n))))
    size = high if steps_since_improvement < 2 else rng.randint(low, high)
    size = max(1, min(limit, size))
    share = 15
    removed = set()
    while len(removed) < size:
        routes = []
        for route in current_routes:
            routes.append([node for node in route if node not in removed])
        routes = [route for route in routes if route]
        count = min(share, size - len(removed))
        if rng.random() < 0.8:
            picked = take_timely(dist, ready, due, routes, count, rng)
        else:
            picked = take_string(dist, routes, count, rng)
        removed.update(picked)
    left = [node for route in current_routes for node in route]
    removed_customers = [node for node in left if node in removed]
    partial_routes = []
    for route in current_routes:
        partial_routes.append([node for node in route if node not in removed])
    return partial_routes, removed_customers


def repair(dist, demands, capacity, ready, due, service, partial_routes,
           removed_customers, steps_since_improvement, rng):
    """Insert the removed customers in random order, each at its cheapest feasible place in
    any route; multiply costs by up to 1.05, or 1.3 after 5 steps without improvement;
    open a new route where that is cheaper; make 30 tries that after the first 3 swap
    customers (pairs: 3 falling to 1 by one every 15 steps without improvement) of the
    best order so far and keep the shortest."""
    routes = [tuple(route) for route in partial_routes if route]
    room = [capacity - sum(demands[node] for node in route) for route in routes]
    legs = {}
    noise = 0.3 if steps_since_improvement >= 5 else 0.05
    n = len(dist) - 1
    tries = 30
    tries = max(1, min(tries, 20 * n // len(removed_customers)))
    known, best_cost = {}, float("inf")
    for attempt in range(tries):
        if attempt < 3:
            order = removed_customers[:]
            rng.shuffle(order)
        else:
            order = best_order[:]
            for _ in range(max(1, 3 - steps_since_improvement // 15)):
                i, j = rng.randrange(len(order)), rng.randrange(len(order))
                order[i], order[j] = order[j], order[i]
        trial, left = [*routes, ()], [*room, capacity]
        total = 0.0
        for node in order:
            need = demands[node]
            lowest = float("inf")
            for r, route in enumerate(trial):
                if left[r] < need:
                    continue
                if (node, route) not in known:
                    known[node, route] = find_place(dist, ready, due, service, legs, route, node)
                cost, place = known[node, route]
                score = cost * (1 + noise * rng.random())
                if score < lowest:
                    lowest, cheapest, chosen, at = score, cost, r, place
            total += cheapest
            if total > best_cost:
                break
            route = trial[chosen]
            trial[chosen] = (*route[:at], node, *route[at:])
            left[chosen] -= need
            if not route:
                trial.append(())
                left.append(capacity)
        else:
            best_cost, best_order, best_routes = total, order, trial
    return [list(route) for route in best_routes if route]
