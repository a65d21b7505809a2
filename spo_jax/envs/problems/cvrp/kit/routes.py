"""What the kit of the CVRP knows of routes: their length, loads, savings, customers."""

from math import inf

from spo_jax.envs.problems.kit import (
    MAX_NODES,
    checked_count,
    checked_nodes,
    checked_number,
    integer_of,
    items_of,
    matrix_of,
    neighbor_list,
    node_of,
    nodes_of,
)

MOST = 1 << 53  # of all demands: up to there sums are exact as floats
UNBOUNDED = 1 << 30  # vehicles


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


def slack(dist, routes, customer=0):
    """How much longer each route may get, where it also serves `customer`: a list of floats.

    inf without a limit on the length or the duration; below 0 for a route that is above one.
    """
    dist, routes = solution_of(dist, routes)
    customer, limits = node_of(customer, len(dist)), limits_of(dist)
    left = []
    for route in routes:
        if limits is None:
            left.append(inf)
            continue
        length, stay = measured(dist, limits, route)
        far, late = limits[0] - length, limits[1] - length - (stay + limits[3][customer])
        left.append(float(late if late < far else far))
    return left


def vehicles(dist):
    """The most routes: an int, 2**30 without a limit."""
    limits = limits_of(matrix_of(dist))
    return UNBOUNDED if limits is None else limits[2]


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


# --- limits of routes -----------------------------------------------------------------------------

LIMITS: list[
    tuple[list, tuple]
] = []  # (a converted matrix, its limits): known by their objects, as in `KEPT`


def limit(dist, longest, lasting, vehicles, service):
    """Give limits to a prepared matrix; programs do not see this function.

    longest: the most that a route may be long. lasting: the most that it may be long with the
    service times of its customers, service [N] of all nodes. vehicles: the most routes that are
    opened while there is room in others.
    """
    dist = matrix_of(dist)
    given = checked_number(longest, 0, inf), checked_number(lasting, 0, inf)
    vehicles = checked_count(vehicles, 1)
    service = [checked_number(each, 0, 1e300) for each in items_of(service)]
    if len(service) != len(dist):
        raise ValueError("a node has no service time")
    LIMITS[:] = [each for each in LIMITS if each[0] is not dist][-7:]
    LIMITS.append((dist, (*given, vehicles, service)))


def limits_of(dist):
    """(longest, lasting, vehicles, service) of a converted matrix, or None."""
    for known, limits in LIMITS:
        if known is dist:
            return limits
    return None


def measured(dist, limits, route):
    """How long a route is, and its service."""
    length, stay, before = 0.0, 0.0, 0
    for node in route:
        length += dist[before][node]
        stay += limits[3][node]
        before = node
    return length + dist[before][0], stay


def may_grow(dist, limits, route, more, service):
    """Whether a route that got longer by that much and had more customers would keep the limits."""
    if limits is None:
        return True
    length, stay = measured(dist, limits, route)
    return length + more <= limits[0] and length + more + (stay + service) <= limits[1]


def service_of(limits, customers):
    service = 0.0
    for node in customers if limits else ():
        service += limits[3][node]
    return service


def is_full(limits, routes):
    """Whether all vehicles are out."""
    return limits is not None and sum(map(bool, routes)) >= limits[2]
