"""Discovered by spo-jax: run cvrp-g-lns-seed0, round 17, discovery utility J = 0.704279,
validated at 0.784941.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. steps counts the
steps since the best cost last fell. rng is a random.Random. The file needs nothing of spo_jax;
`spo solve` reads it.
"""

def take_radial(dist, routes, count, rng):
    left = [node for route in routes for node in route]
    seed = rng.choice(left)
    row = dist[seed]
    left.sort(key=lambda node: row[node])
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
    """Remove 25 for 10 steps after an improvement and from 10 to 25 customers at random in
    stagnation, taking separate regions of at most 15, each of the customers nearest to a
    random customer."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = 10
    high = max(low, min(limit, 25))
    size = high if steps_since_improvement < 10 else rng.randint(low, high)
    size = max(1, min(limit, size))
    share = 15
    removed = set()
    while len(removed) < size:
        routes = []
        for route in current_routes:
            routes.append([node for node in route if node not in removed])
        routes = [route for route in routes if route]
        count = min(share, size - len(removed))
        picked = take_radial(dist, routes, count, rng)
        removed.update(picked)
    left = [node for route in current_routes for node in route]
    removed_customers = [node for node in left if node in removed]
    partial_routes = []
    for route in current_routes:
        partial_routes.append([node for node in route if node not in removed])
    return partial_routes, removed_customers


def repair(dist, demands, capacity, partial_routes, removed_customers,
           steps_since_improvement, rng):
    """Insert the removed customers by decreasing distance from the depot (with a random
    factor), each at its cheapest feasible place in a route that visits one of its nearest
    customers (how many: 6 to 12 in turn with the steps without improvement); multiply
    costs by up to 1.2 at random; open a new route where that is cheaper; make 4 tries
    that after the first 6 move customers (how many: 3) within the best order so far and
    keep the shortest."""
    routes = [tuple(route) for route in partial_routes if route]
    room = [capacity - sum(demands[node] for node in route) for route in routes]
    width = 6 + steps_since_improvement % 7
    near = {}
    for node in removed_customers:
        row = dist[node]
        near[node] = sorted(range(1, len(dist)), key=lambda other: row[other])[:width]
    homes = {node: r for r, route in enumerate(routes) for node in route}
    noise = 0.2
    n = len(dist) - 1
    tries = 4
    tries = max(1, min(tries, 15 * n // len(removed_customers)))
    known, best_cost = {}, float("inf")
    for attempt in range(tries):
        if attempt < 6:
            order = removed_customers[:]
            order.sort(key=lambda node: -dist[0][node] * rng.uniform(0.8, 1.2))
        else:
            order = best_order[:]
            for _ in range(3):
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
                score = cost * (1 + noise * rng.random())
                if score < lowest:
                    lowest, cheapest, chosen, at = score, cost, r, place
            total += cheapest
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
