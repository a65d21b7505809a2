"""Time windows of the kit of the VRPTW, in plain Python; without `times`, None, there are none."""

from math import inf

from spo_jax.envs.problems.cvrp.kit.routes import demands_of, solution_of
from spo_jax.envs.problems.kit import checked_number, integer_of, items_of

# Late is what is late by more than this share of when the depot closes: half of what rules allow,
# since sums of the same times come in another order here.
ROUNDING = 5e-13


def timed_problem_of(dist, demands, capacity, ready, due, service, routes):
    """(dist, demands, capacity, routes, times), converted. Raises TypeError, ValueError.

    times: (ready, due, service), due later by what rounding explains.
    """
    dist, routes = solution_of(dist, routes)
    demands, capacity = demands_of(demands, len(dist)), integer_of(capacity)
    ready, due, service = [row_of(each, len(dist)) for each in (ready, due, service)]
    late = ROUNDING * due[0] if dist else 0.0
    return dist, demands, capacity, routes, (ready, [each + late for each in due], service)


def row_of(given, least):
    """A float of each node, at least `least`. Raises TypeError, ValueError."""
    row = [checked_number(each, -1e300, 1e300) for each in items_of(given)]
    if len(row) < least:
        raise ValueError("a node has no time")
    return row


def served(dist, times, clock, stop, node):
    """When a vehicle that leaves a stop at `clock` has served the next one; inf: it is late."""
    ready, due, service = times
    at = max(clock + dist[stop][node], ready[node])
    return inf if at > due[node] else at + service[node]


def clocks_of(dist, times, route):
    """(leaves, latest) of a route of L customers: [L + 1] each; None without times.

    leaves: when a vehicle can leave the depot and each customer, inf where it is late.
    latest: until when it must arrive at each customer and at the depot to be late nowhere.
    """
    if times is None:
        return None
    ready, due, service = times
    leaves, latest, stop = [ready[0]], [due[0]], 0
    for node in route:
        leaves.append(served(dist, times, leaves[-1], stop, node))
        stop = node
    stop = 0
    for node in reversed(route):
        by = min(due[node], latest[-1] - dist[node][stop] - service[node])
        latest.append(-inf if by < ready[node] else by)
        stop = node
    return leaves, latest[::-1]


def reaches(dist, times, clock, path, latest):
    """Whether who leaves path[0] at `clock` serves the stops between and is at path[-1] in time."""
    for i in range(1, len(path) - 1):
        clock = served(dist, times, clock, path[i - 1], path[i])
    return clock + dist[path[-2]][path[-1]] <= latest


def takes_in_time(dist, times, clocks, route, index, node):
    """Whether a route with these clocks is in time with `node` at an index."""
    if times is None:
        return True
    stops = [0, *route, 0]
    path = [stops[index], node, stops[index + 1]]
    return reaches(dist, times, clocks[0][index], path, clocks[1][index])


def joins_in_time(dist, times, route, end, nodes, other, begin):
    """Whether route[:end], `nodes` and other[begin:] are one route in time."""
    if times is None:
        return True
    path = [[0, *route][end], *nodes, [*other, 0][begin]]
    leaves, latest = clocks_of(dist, times, route)[0], clocks_of(dist, times, other)[1]
    return reaches(dist, times, leaves[end], path, latest[begin])


def begins_of(dist, ready, service, routes):
    """When service begins at each customer of the routes, be it late or not: by customer."""
    begin = {}
    for route in routes:
        stop, clock = 0, ready[0] if route else 0.0
        for node in route:
            clock = max(clock + dist[stop][node], ready[node])
            begin[node] = clock
            clock += service[node]
            stop = node
    return begin
