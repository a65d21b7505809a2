"""Discovered by spo-jax: run paper-cvrp, round 29, discovery utility J = 0.706123, validated at
0.759336.

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
    """Remove 35% of the customers, taking separate regions (how many: 1 to 2 in turn with
    the steps without improvement), each of the customers nearest to a random customer."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    size = limit
    size = max(1, min(limit, size))
    regions = 1 + steps_since_improvement % 2
    share = max(1, -(-size // regions))
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
    """Insert the removed customers in an order that changes from try to try (random, by
    decreasing distance from the depot, by decreasing demand), each at its cheapest
    feasible place in a route that visits one of its nearest customers (how many: 10 to 20
    in turn with the steps without improvement); open a new route where that is cheaper;
    make 3 and one more every step without improvement, up to 12, tries and keep the
    shortest."""
    routes = [tuple(route) for route in partial_routes if route]
    room = [capacity - sum(demands[node] for node in route) for route in routes]
    width = 10 + steps_since_improvement % 11
    near = {}
    for node in removed_customers:
        row = dist[node]
        near[node] = sorted(range(1, len(dist)), key=lambda other: row[other])[:width]
    homes = {node: r for r, route in enumerate(routes) for node in route}
    n = len(dist) - 1
    low, high = 3, 12
    tries = min(high, low + steps_since_improvement)
    tries = max(1, min(tries, 20 * n // len(removed_customers)))
    known, best_cost = {}, float("inf")
    for attempt in range(tries):
        order = removed_customers[:]
        rng.shuffle(order)
        turn = attempt % 3
        if turn == 1:
            order.sort(key=lambda node: -dist[0][node] * rng.uniform(0.8, 1.2))
        elif turn == 2:
            order.sort(key=lambda node: -dist[0][node] * rng.uniform(0.8, 1.2))
        elif turn == 3:
            order.sort(key=lambda node: -demands[node] * rng.uniform(0.8, 1.2))
        trial, left = [*routes, ()], [*room, capacity]
        home = dict(homes)
        total = 0.0
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
            best_cost, best_routes = total, trial
    return [list(route) for route in best_routes if route]
