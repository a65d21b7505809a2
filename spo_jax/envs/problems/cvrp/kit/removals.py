"""The removals of the kit of the CVRP, in plain Python."""

from spo_jax.envs.problems.cvrp.kit.routes import (
    demands_of,
    routes_of,
    savings_of,
    served_by,
    solution_of,
)
from spo_jax.envs.problems.kit import (
    MAX_NODES,
    checked_count,
    checked_number,
    drawn,
    nearest_of,
    node_of,
    nodes_of,
    number_of,
    rank,
)


def remove(routes, customers):
    """(routes without `customers`, those of `customers` that were in them)."""
    return without(routes_of(routes), nodes_of(customers))


def without(routes, customers):
    gone = set(customers)
    kept = [[node for node in route if node not in gone] for route in routes]
    return kept, [node for route in routes for node in route if node in gone]


def radial_removal(dist, routes, center, count):
    """Remove the `count` customers nearest to the node `center`, which may be any node."""
    dist, routes = solution_of(dist, routes)
    center, count = node_of(center, len(dist)), checked_count(count)
    return without(routes, nearest_of(dist, center, served_by(routes), count))


def segment_removal(routes, center, count):
    """Remove up to `count` consecutive customers of the route of `center`, around it."""
    routes = routes_of(routes)
    center, count = node_of(center, MAX_NODES + 1), checked_count(count)
    for route in routes:
        if center in route:
            count = min(count, len(route))
            start = min(max(0, route.index(center) - count // 2), len(route) - count)
            return without(routes, route[start : start + count])
    raise ValueError("center is not in the routes")


def route_removal(dist, routes, center, count):
    """Remove whole routes, those with customers nearest to `center` first, while they fit `count`.

    If the first is longer than `count`, only its customers nearest to `center` go.
    """
    dist, routes = solution_of(dist, routes)
    center, count = node_of(center, len(dist)), checked_count(count)
    home = {node: r for r, route in enumerate(routes) for node in route}
    chosen, seen = [], set()
    for node in nearest_of(dist, center, served_by(routes), len(home)):
        route = routes[home[node]]
        if home[node] in seen or (chosen and len(chosen) + len(route) > count):
            continue
        seen.add(home[node])
        chosen += nearest_of(dist, center, route, count)
    return without(routes, chosen)


def string_removal(dist, routes, center, count, rng, length=10, gap=0):
    """Remove up to `count` customers as strings of adjacent routes (SISR).

    One string of 1 to `length` customers from each route that a customer near `center` is on, the
    nearest first. gap: half of the strings keep up to that many stops inside. Two draws a string,
    or four with a gap.
    """
    dist, routes = solution_of(dist, routes)
    served, center = served_by(routes), node_of(center, len(dist))
    count = min(checked_count(count), len(served))
    length, gap = checked_count(length, 1), checked_count(gap)
    home = {node: r for r, route in enumerate(routes) for node in route}
    chosen, cut = [], set()
    for node in nearest_of(dist, center, served, len(served)):
        if len(chosen) >= count:
            break
        if home[node] in cut:
            continue
        cut.add(home[node])
        route = routes[home[node]]
        size = 1 + int(drawn(rng) * min(length, len(route), count - len(chosen)))
        skipped, split = 0, size
        if gap:
            if drawn(rng) < 0.5:
                skipped = min(gap, len(route) - size)
            split = 1 + int(drawn(rng) * size)
        window, where = size + skipped, route.index(node)
        low, high = max(0, where - window + 1), min(where, len(route) - window)
        start = low + int(drawn(rng) * (high - low + 1))
        chosen += route[start : start + split]
        chosen += route[start + split + skipped : start + window]
    return without(routes, chosen)


def related_removal(
    dist, demands, routes, center, count, rng, power=3.0, by_demand=0.0, by_route=0.0
):
    """Remove `count` customers, at least one, related to those removed before them (Shaw).

    Relatedness to a removed customer, smaller is closer: the distance over the mean distance
    to all customers, plus by_demand * the difference of demands over the mean demand, plus
    by_route if they are on different routes. Two draws a customer: which of the removed ones to
    compare with, and the rank len * u ** power. O(count * N log N).
    """
    given = related_of(dist, demands, routes, center, count, power, by_demand, by_route)
    return remove_related(*given, rng, None, 0.0)


def related_of(dist, demands, routes, center, count, power, by_demand, by_route):
    """All of them, converted. Raises TypeError, ValueError."""
    dist, routes = solution_of(dist, routes)
    center, count = node_of(center, len(dist)), checked_count(count)
    demands, power = demands_of(demands, len(dist)), number_of(power)
    by_demand = checked_number(by_demand, -1e6, 1e6)
    by_route = checked_number(by_route, -1e6, 1e6)
    return dist, demands, routes, center, count, power, by_demand, by_route


def remove_related(
    dist, demands, routes, center, count, power, by_demand, by_route, rng, begin, by_time
):
    """`related_removal`, where by_time times the difference of `begin` counts as distance."""
    served = served_by(routes)
    count = min(count, len(served))
    home = {node: r for r, route in enumerate(routes) for node in route}
    mean_demand = sum(demands[node] for node in served) / max(1, len(served)) or 1.0
    rest, chosen = list(served), [center]
    rest.remove(center)
    while len(chosen) < count:
        other = chosen[int(drawn(rng) * len(chosen))]
        row, total = dist[other], 0.0
        for node in served:
            total += row[node]
        mean = total / len(served) or 1.0
        related = {}
        for node in rest:
            far = row[node]
            if by_time:
                far += by_time * abs(begin[node] - begin[other])
            score = far / mean
            if by_demand:
                score += by_demand * (abs(demands[node] - demands[other]) / mean_demand)
            if by_route and home[node] != home[other]:
                score += by_route
            related[node] = score
        ranked = sorted(rest, key=lambda node: related[node])
        node = ranked[rank(rng, len(ranked), power)]
        rest.remove(node)
        chosen.append(node)
    return without(routes, chosen)


def worst_removal(dist, routes, count, rng, power=3.0):
    """Remove `count` customers one at a time, those preferred that shorten their route most.

    One draw a customer: the rank len * u ** power in the order of savings (Ropke and Pisinger).
    """
    dist, routes = solution_of(dist, routes)
    count, power = min(checked_count(count), len(served_by(routes))), number_of(power)
    rest, removed = [list(route) for route in routes], []
    for _ in range(count):
        saved = [each for route in rest for each in savings_of(dist, route)]
        flat = [(r, i) for r, route in enumerate(rest) for i in range(len(route))]
        ranked = sorted(range(len(flat)), key=lambda p: -saved[p])
        r, i = flat[ranked[rank(rng, len(ranked), power)]]
        removed.append(rest[r].pop(i))
    return without(routes, removed)


def random_removal(routes, count, rng):
    """Remove `count` customers drawn uniformly; one draw a customer."""
    routes = routes_of(routes)
    pool = served_by(routes)
    count = min(checked_count(count), len(pool))
    for i in range(count):
        j = i + int(drawn(rng) * (len(pool) - i))
        pool[i], pool[j] = pool[j], pool[i]
    return without(routes, pool[:count])
