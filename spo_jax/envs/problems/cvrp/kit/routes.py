"""What the kit of the CVRP knows of routes: their length, loads, savings, customers."""

from spo_jax.envs.problems.kit import (
    MAX_NODES,
    checked_count,
    checked_nodes,
    integer_of,
    items_of,
    matrix_of,
    neighbor_list,
    nodes_of,
)

MOST = 1 << 53  # of all demands: up to there sums are exact as floats


def neighbors(dist, k):
    """For every node the k nearest other customers (at most 64), nearest first, as tuples."""
    dist, k = matrix_of(dist), checked_count(k)
    return tuple(tuple(neighbor_list(dist, node, 1, k)) for node in range(len(dist)))


def cost(dist, routes):
    """The total length of all routes, from the depot and back."""
    dist, routes = solution_of(dist, routes)
    if routes and not dist:
        raise ValueError("there is no depot")
    length = 0.0
    for route in routes:
        before = 0
        for node in route:
            length += dist[before][node]
            before = node
        length += dist[before][0]
    return float(length)


def loads(demands, routes):
    """The total demand of each route: a list of ints."""
    demands = demands_of(demands, 0)
    routes = routes_of(routes, len(demands))
    return [sum(demands[node] for node in route) for route in routes]


def savings(dist, routes):
    """What each route gets shorter by without each of its customers: a list of lists of floats."""
    dist, routes = solution_of(dist, routes)
    return [savings_of(dist, route) for route in routes]


def savings_of(dist, route):
    path = [0, *route, 0]
    saved = []
    for i, node in enumerate(route):
        before, after = path[i], path[i + 2]
        saved.append(float(dist[before][node] + dist[node][after] - dist[before][after]))
    return saved


# --- arguments ------------------------------------------------------------------------------------


def routes_of(given, end=MAX_NODES + 1):
    """Lists of distinct customers from 1 to end - 1. Raises TypeError, ValueError."""
    routes, total = [], 0
    for each in items_of(given):
        route = items_of(each)
        total += len(route)
        if total > MAX_NODES:
            raise ValueError("the routes are too long")
        routes.append(nodes_of(route))
    checked_nodes(*routes, first=1, end=end)
    return routes


def solution_of(dist, routes):
    """The matrix, and routes of its customers. Raises TypeError, ValueError."""
    dist = matrix_of(dist)
    return dist, routes_of(routes, len(dist))


def demands_of(given, least):
    """At least `least` ints, whose sums are exact as floats. Raises TypeError, ValueError."""
    demands, total = [integer_of(demand) for demand in items_of(given)], 0
    for demand in demands:
        if abs(demand) > MOST:
            raise ValueError("a demand is too large")
        total += abs(demand)
        if total > MOST:
            raise ValueError("the demands are too large")
    if len(demands) < least:
        raise ValueError("a node has no demand")
    return demands


def problem_of(dist, demands, capacity, routes):
    """All of them, converted. Raises TypeError, ValueError."""
    dist, routes = solution_of(dist, routes)
    return dist, demands_of(demands, len(dist)), integer_of(capacity), routes


def served_by(routes):
    """All customers, in the order of the routes."""
    return [node for route in routes for node in route]


def room_of(demands, capacity, route):
    return capacity - sum(demands[node] for node in route)
