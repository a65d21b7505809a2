"""Discovered by spo-jax: run cvrp-eoh-seed0, round 4, discovery utility J = 0.701801, validated
at 0.784333.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. steps counts the
steps since the best cost last fell. rng is a random.Random. The file needs nothing of spo_jax;
`spo solve` reads it.
"""

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
        length = min(rng.randint(1, 8), len(route), count - len(chosen))
        start = rng.randint(max(0, where - length + 1), min(where, len(route) - length))
        chosen += route[start : start + length]
        if len(chosen) >= count:
            break
    return chosen


def take_worst(dist, routes, count, rng):
    gain = {}
    for route in routes:
        for before, node, after in zip([0] + route, route, route[1:] + [0]):
            saving = dist[before][node] + dist[node][after] - dist[before][after]
            gain[node] = saving * (1 + 1 * rng.random())
    left = list(gain)
    seed = rng.choice(left)
    row = dist[seed]
    left.sort(key=lambda node: row[node])
    left = left[: 3 * count]
    left.sort(key=lambda node: -gain[node])
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
    """Remove 30 for 10 steps after an improvement and from 10% of the customers to 30
    customers at random in stagnation, taking separate regions of at most 12, each of
    strings of consecutive stops (length 1 to 8 at random) through the routes around a
    random customer, or on every third step without improvement the customers whose
    removal saves most among the 3 times as many around a random customer, ranked with
    noise."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = int(0.1 * n)
    high = max(low, min(limit, 30))
    size = high if steps_since_improvement < 10 else rng.randint(low, high)
    size = max(1, min(limit, size))
    share = 12
    removed = set()
    while len(removed) < size:
        routes = []
        for route in current_routes:
            routes.append([node for node in route if node not in removed])
        routes = [route for route in routes if route]
        count = min(share, size - len(removed))
        if steps_since_improvement % 3 != 2:
            picked = take_string(dist, routes, count, rng)
        else:
            picked = take_worst(dist, routes, count, rng)
        removed.update(picked)
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
