"""Discovered by spo-jax: run cvrp-standard-seed0, round 2, discovery utility J = 0.704130, validated at
0.786473.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. steps counts the
steps since the best cost last fell. rng is a random.Random. The file needs nothing of spo_jax;
`spo solve` reads it.
"""

def take_radial(dist, routes, count, steps_since_improvement, rng):
    left = [node for route in routes for node in route]
    seed = left[(7 * steps_since_improvement + rng.randrange(7)) % len(left)]
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    return left[:count]


def take_border(dist, routes, count, steps_since_improvement, rng):
    home = {node: r for r, route in enumerate(routes) for node in route}
    left = list(home)
    seed = left[(7 * steps_since_improvement + rng.randrange(7)) % len(left)]
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    left = left[: 2 * count]
    gap = {}
    for node in left:
        row = dist[node]
        others = [row[other] for other in left if home[other] != home[node]]
        gap[node] = min(others, default=float("inf"))
    left.sort(key=lambda node: gap[node])
    return left[:count]


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
    """Remove from 12 to 25 customers at random, large numbers more often, taking separate
    regions (how many: 1 growing to 3 by one every 5 steps without improvement), each of
    the customers nearest to a seed that moves 7 customers along the routes with every
    step without improvement, or ever more often as stagnation passes 20 steps of the 2
    times as many customers around a seed that moves 7 customers along the routes with
    every step without improvement, those that lie closest to a stop of another route."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = 12
    high = max(low, min(limit, 25))
    size = low + int((high - low + 1) * rng.random() ** 0.5)
    size = max(1, min(limit, size))
    regions = min(3, 1 + steps_since_improvement // 5)
    share = max(1, -(-size // regions))
    removed = set()
    while len(removed) < size:
        routes = []
        for route in current_routes:
            routes.append([node for node in route if node not in removed])
        routes = [route for route in routes if route]
        count = min(share, size - len(removed))
        if rng.random() * (steps_since_improvement + 20) < 20:
            picked = take_radial(dist, routes, count, steps_since_improvement, rng)
        else:
            picked = take_border(dist, routes, count, steps_since_improvement, rng)
        removed.update(picked)
    left = [node for route in current_routes for node in route]
    removed_customers = [node for node in left if node in removed]
    partial_routes = []
    for route in current_routes:
        partial_routes.append([node for node in route if node not in removed])
    return partial_routes, removed_customers


def repair(dist, demands, capacity, partial_routes, removed_customers,
           steps_since_improvement, rng):
    """Insert the removed customers by decreasing distance from the other removed customers
    (with a random factor), each at its cheapest feasible place in a route that visits one
    of its nearest customers (how many: 8 growing to 16 by one every 5 steps without
    improvement); open a new route where that is cheaper; make 5, or 8 n/removed after 2
    steps without improvement, tries that after the first 4 move customers (how many: 1 to
    5 in turn with the steps without improvement) within the best order so far and keep
    the shortest."""
    routes = [tuple(route) for route in partial_routes if route]
    room = [capacity - sum(demands[node] for node in route) for route in routes]
    width = min(16, 8 + steps_since_improvement // 5)
    near = {}
    for node in removed_customers:
        row = dist[node]
        near[node] = sorted(range(1, len(dist)), key=lambda other: row[other])[:width]
    homes = {node: r for r, route in enumerate(routes) for node in route}
    stake = {}
    for node in removed_customers:
        row = dist[node]
        stake[node] = sum(row[other] for other in removed_customers)
    n = len(dist) - 1
    low, high = 5, 8 * n // len(removed_customers)
    tries = high if steps_since_improvement >= 2 else low
    tries = max(1, min(tries, 30 * n // len(removed_customers)))
    known, best_cost = {}, float("inf")
    for attempt in range(tries):
        if attempt < 4:
            order = removed_customers[:]
            order.sort(key=lambda node: -stake[node] * rng.uniform(0.5, 1.5))
        else:
            order = best_order[:]
            for _ in range(1 + steps_since_improvement % 5):
                order.insert(rng.randrange(len(order)), order.pop(rng.randrange(len(order))))
        trial, left = [*routes, ()], [*room, capacity]
        home = dict(homes)
        total = 0.0
        for node in order:
            need = demands[node]
            lowest = float("inf")
            nearby = {home[other] for other in near[node] if other in home}
            for r in [*nearby, len(trial) - 1]:
                route = trial[r]
                if left[r] < need:
                    continue
                if (node, route) not in known:
                    known[node, route] = find_place(dist, route, node)
                cost, place = known[node, route]
                if cost < lowest:
                    lowest, chosen, at = cost, r, place
            total += lowest
            if total > best_cost:
                break
            route = trial[chosen]
            trial[chosen] = (*route[:at], node, *route[at:])
            left[chosen] -= need
            home[node] = chosen
            if not route:
                trial.append(())
                left.append(capacity)
        else:
            best_cost, best_order, best_routes = total, order, trial
    return [list(route) for route in best_routes if route]
