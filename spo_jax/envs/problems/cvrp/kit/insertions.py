"""The insertions of the kit of the CVRP, in plain Python."""

from math import inf

from spo_jax.envs.problems.cvrp.kit.routes import (
    is_full,
    limits_of,
    may_grow,
    problem_of,
    room_of,
    service_of,
)
from spo_jax.envs.problems.cvrp.kit.times import clocks_of, takes_in_time
from spo_jax.envs.problems.kit import (
    DEPTH,
    checked_count,
    checked_nodes,
    checked_number,
    drawn,
    neighbor_list,
    neighbor_list_to,
    node_of,
    nodes_of,
)


def best_position(dist, demands, capacity, routes, customer):
    """(added length, route, index) of the cheapest place with room: `routes[route].insert(...)`.

    The route is len(routes), and the index 0, if a new route is cheaper or no other has room.
    """
    return cheapest_position((*problem_of(dist, demands, capacity, routes), None), customer)


def cheapest_position(problem, customer):
    """`best_position` of (dist, demands, capacity, routes, times), converted."""
    dist, demands, capacity, routes, times = problem
    customer = node_of(customer, len(dist), first=1)
    checked_nodes(*routes, [customer], first=1)
    best = (dist[0][customer] + dist[customer][0], len(routes), 0)
    need, limits = demands[customer], limits_of(dist)
    clocks = [clocks_of(dist, times, route) for route in routes]
    found = [
        place
        for place in _places(dist, routes, customer, 0)
        if room_of(demands, capacity, routes[place[1]]) >= need
        and _may_take(dist, limits, routes[place[1]], customer, place[0])
        and takes_in_time(dist, times, clocks[place[1]], routes[place[1]], place[2], customer)
    ]
    if found:
        place = min(found, key=lambda place: place[0])
        best = place if place[0] <= best[0] or is_full(limits, routes) else best
    return float(best[0]), best[1], best[2]


def ordered_insertion(
    dist,
    demands,
    capacity,
    routes,
    customers,
    *,
    bound=inf,
    near=0,
    blink=0.0,
    noise=0.0,
    fresh=1.0,
    rng=None,
):
    """Insert `customers` in their order, each at its cheapest place with room: (routes, added).

    A new route is a place like any other; its cost is compared times `fresh` (inf: only where
    nothing else has room). Empty routes are dropped.
    bound: stop as soon as the added length reaches it, and return (None, inf).
    near: look only beside that many of a customer's nearest customers in the routes (of its 64
        nearest; all places if none of them is); 0 looks at all places.
    blink: the probability that a better place is overlooked; a draw for each better place.
    noise: costs are compared times 1 + noise * u, a draw for each place with room.
    O(len(customers) * N), or O(len(customers) * near).
    """
    problem = (*problem_of(dist, demands, capacity, routes), None)
    return insert_in_order(problem, customers, bound, near, blink, noise, fresh, rng)


def insert_in_order(problem, customers, bound, near, blink, noise, fresh, rng):
    """`ordered_insertion` of (dist, demands, capacity, routes, times), converted."""
    dist, demands, capacity, routes, times = problem
    customers = nodes_of(customers)
    checked_nodes(*routes, customers, first=1, end=len(dist))
    bound, near = checked_number(bound, -inf, inf), checked_count(near)
    blink, noise = checked_number(blink, 0, 1), checked_number(noise, 0, 1e6)
    fresh = checked_number(fresh, 0, inf)
    grown = [list(route) for route in routes if route]
    room = [room_of(demands, capacity, route) for route in grown]
    clocks = [clocks_of(dist, times, route) for route in grown]
    added, limits = 0.0, limits_of(dist)
    for node in customers:
        best, need = None, demands[node]
        for price, r, index in _places(dist, grown, node, near):
            if room[r] < need or not _may_take(dist, limits, grown[r], node, price):
                continue
            if not takes_in_time(dist, times, clocks[r], grown[r], index, node):
                continue
            compared = price * (1.0 + noise * drawn(rng)) if noise else price
            if best is None or compared < best:
                if blink and best is not None and drawn(rng) < blink:
                    continue
                best, paid, place = compared, price, (r, index)
        alone = dist[0][node] + dist[node][0]
        if best is None or _freshness(limits, grown, fresh) * alone < best:
            grown.append([node])
            room.append(capacity - need)
            clocks.append(clocks_of(dist, times, [node]))
            paid = alone
        else:
            r, index = place
            grown[r].insert(index, node)
            room[r] -= need
            clocks[r] = clocks_of(dist, times, grown[r])
        added += paid
        if added >= bound:
            return None, inf
    return grown, float(added)


def regret_insertion(
    dist,
    demands,
    capacity,
    routes,
    customers,
    *,
    k=2,
    weight=0.0,
    bound=inf,
    near=0,
    noise=0.0,
    fresh=1.0,
    rng=None,
):
    """Insert the customer with the highest score first, at its cheapest place: (routes, added).

    score: over its k cheapest routes with room, the sum of what the 2nd to the k-th cost more than
        the cheapest, less weight * the cheapest cost. A route of its own counts with its cost times
        `fresh`, once for each route that is missing of k. k=1 with weight=1 is greedy insertion.
    noise: scores are compared times 1 + noise * u, a draw for each waiting customer each time.
    bound, near, fresh: as in `ordered_insertion`; with fresh = inf, a customer without room
        anywhere goes first.
    """
    k, weight = checked_count(k, 1), checked_number(weight, -1e6, 1e6)
    problem = (*problem_of(dist, demands, capacity, routes), None)
    return insert_by_regret(problem, customers, k, weight, bound, near, noise, fresh, rng)


def insert_by_regret(problem, customers, k, weight, bound, near, noise, fresh, rng):
    """`regret_insertion` of (dist, demands, capacity, routes, times), k and weight, converted."""
    dist, demands, capacity, routes, times = problem
    waiting, added = nodes_of(customers), 0.0
    checked_nodes(*routes, waiting, first=1, end=len(dist))
    bound, near = checked_number(bound, -inf, inf), checked_count(near)
    noise, fresh = checked_number(noise, 0, 1e6), checked_number(fresh, 0, inf)
    grown = [list(route) for route in routes if route]
    room = [room_of(demands, capacity, route) for route in grown]
    clocks = [clocks_of(dist, times, route) for route in grown]
    limits = limits_of(dist)
    while waiting:
        best = None
        for node in waiting:
            cheapest = {}
            for price, r, index in _places(dist, grown, node, near):
                if room[r] < demands[node] or not _may_take(dist, limits, grown[r], node, price):
                    continue
                if not takes_in_time(dist, times, clocks[r], grown[r], index, node):
                    continue
                if r not in cheapest or price < cheapest[r][0]:
                    cheapest[r] = price, index
            alone = dist[0][node] + dist[node][0]
            own = _freshness(limits, grown, fresh) * alone
            prices = [price for price, _ in cheapest.values()]
            prices = sorted([*prices, *[own] * (min(k, len(grown) + 1) - len(prices)), own])
            score = 0.0
            for price in prices[1:k]:
                score += price - prices[0]
            score -= weight * prices[0]
            if noise:
                score *= 1.0 + noise * drawn(rng)
            if best is None or score > best:
                best, chosen = score, node
                found = [(price, r, i) for r, (price, i) in cheapest.items() if price == prices[0]]
                place = min(found, key=lambda each: each[1], default=(alone, len(grown), 0))
        paid, r, index = place
        waiting.remove(chosen)
        if r == len(grown):
            grown.append([])
            room.append(capacity)
            clocks.append(None)
        grown[r].insert(index, chosen)
        room[r] -= demands[chosen]
        clocks[r] = clocks_of(dist, times, grown[r])
        added += paid
        if added >= bound:
            return None, inf
    return grown, float(added)


def greedy_insertion(
    dist,
    demands,
    capacity,
    routes,
    customers,
    *,
    bound=inf,
    near=0,
    noise=0.0,
    fresh=1.0,
    rng=None,
):
    """Insert the customer with the lowest insertion cost first: (routes, added length)."""
    return regret_insertion(
        dist,
        demands,
        capacity,
        routes,
        customers,
        k=1,
        weight=1.0,
        bound=bound,
        near=near,
        noise=noise,
        fresh=fresh,
        rng=rng,
    )


BIG = 1e6  # what stands for inf as the factor of a new route, so that differences stay finite


def _freshness(limits, routes, fresh):
    """What the cost of a new route counts times; where all vehicles are out, as if it were inf."""
    return BIG if is_full(limits, routes) else min(fresh, BIG)


def _may_take(dist, limits, route, node, price):
    """Whether a route keeps the limits with `node` at a place of that price."""
    return may_grow(dist, limits, route, price, service_of(limits, [node]))


def _places(dist, routes, node, near):
    """(added length, route, index) of the places of `node`, in the order in which they are tried.

    near: 0 for all, by route and index; else those after the customers of the routes that are
        nearest to `node` and those before the customers that are nearest from it, by turns.
    """
    tries = [(r, i) for r, route in enumerate(routes) for i in range(len(route) + 1) if route]
    if near:
        where = {other: (r, i) for r, route in enumerate(routes) for i, other in enumerate(route)}
        after = [where[c] for c in neighbor_list_to(dist, node, 1, DEPTH) if c in where][:near]
        before = [where[c] for c in neighbor_list(dist, node, 1, DEPTH) if c in where][:near]
        if after or before:
            tries = []
            for k in range(near if near < DEPTH else DEPTH):
                tries += [(r, i + 1) for r, i in after[k : k + 1]]
                tries += before[k : k + 1]
    found = []
    for r, i in tries:
        a = routes[r][i - 1] if i else 0
        b = routes[r][i] if i < len(routes[r]) else 0
        found.append((dist[a][node] + dist[node][b] - dist[a][b], r, i))
    return found
