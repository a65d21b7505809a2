"""Discovered by spo-jax: run paper-cvrp, round 22, discovery utility J = 0.706552, validated at
0.758463.

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
    """Remove 3 mean routes, taking the customers nearest to a random customer."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    size = int(3 * n / len(current_routes))
    size = max(1, min(limit, size))
    routes = [route for route in current_routes if route]
    count = size
    picked = take_radial(dist, routes, count, rng)
    removed = set(picked)
    left = [node for route in current_routes for node in route]
    removed_customers = [node for node in left if node in removed]
    partial_routes = []
    for route in current_routes:
        partial_routes.append([node for node in route if node not in removed])
    return partial_routes, removed_customers


def repair(dist, demands, capacity, partial_routes, removed_customers,
           steps_since_improvement, rng):
    """Insert the removed customers in an order that changes from try to try (random, by
    decreasing gap between their two cheapest routes, by decreasing distance from the
    depot), each at its cheapest feasible place in a route that visits one of its nearest
    customers (how many: 10 growing to 20 by one every 5 steps without improvement);
    multiply costs by a random factor that grows to 1.5 (half way after 5 steps without
    improvement); prefer routes that are left with much room (weight 0.1); open a new
    route where that is cheaper; make 3 and one more every step without improvement, up to
    12, tries that after the first 4 move customers (how many: 1 to 3 in turn with the
    steps without improvement) within the best order so far and keep the shortest."""
    routes = [tuple(route) for route in partial_routes if route]
    room = [capacity - sum(demands[node] for node in route) for route in routes]
    width = min(20, 10 + steps_since_improvement // 5)
    near = {}
    for node in removed_customers:
        row = dist[node]
        near[node] = sorted(range(1, len(dist)), key=lambda other: row[other])[:width]
    homes = {node: r for r, route in enumerate(routes) for node in route}
    stake = {}
    for node in removed_customers:
        open_routes = [r for r, route in enumerate(routes) if room[r] >= demands[node]]
        costs = [find_place(dist, routes[r], node)[0] for r in open_routes]
        costs = sorted(costs + 2 * [2 * dist[0][node]])
        stake[node] = costs[1] - costs[0]
    noise = 0.5 * steps_since_improvement / (steps_since_improvement + 5)
    n = len(dist) - 1
    low, high = 3, 12
    tries = min(high, low + steps_since_improvement)
    tries = max(1, min(tries, 30 * n // len(removed_customers)))
    known, best_cost = {}, float("inf")
    for attempt in range(tries):
        if attempt < 4:
            order = removed_customers[:]
            rng.shuffle(order)
            turn = attempt % 3
            if turn == 1:
                order.sort(key=lambda node: -stake[node] * rng.uniform(0.5, 1.5))
            elif turn == 2:
                order.sort(key=lambda node: -dist[0][node] * rng.uniform(0.9, 1.1))
        else:
            order = best_order[:]
            for _ in range(1 + steps_since_improvement % 3):
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
                score -= 0.1 * dist[0][node] * (left[r] - need) / capacity
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
