"""What the kit of the CVRP knows of routes: their length, loads, savings, customers."""

from spo_jax.envs.problems.kit import checked_nodes, neighbor_list


def neighbors(dist, k):
    """For every node the k nearest other customers (at most 64), nearest first, as tuples."""
    return tuple(tuple(neighbor_list(dist, node, 1, k)) for node in range(len(dist)))


def cost(dist, routes):
    """The total length of all routes, from the depot and back."""
    checked_nodes(*routes, first=1, end=len(dist))
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
    checked_nodes(*routes, first=1, end=len(demands))
    return [int(sum(demands[node] for node in route)) for route in routes]


def savings(dist, routes):
    """What each route gets shorter by without each of its customers: a list of lists of floats."""
    checked_nodes(*routes, first=1, end=len(dist))
    return [savings_of(dist, route) for route in routes]


def savings_of(dist, route):
    path = [0, *route, 0]
    saved = []
    for i, node in enumerate(route):
        before, after = path[i], path[i + 2]
        saved.append(float(dist[before][node] + dist[node][after] - dist[before][after]))
    return saved


def served_by(dist, routes):
    """All customers, in the order of the routes. Raises ValueError."""
    checked_nodes(*routes, first=1, end=len(dist))
    return [node for route in routes for node in route]


def room_of(demands, capacity, route):
    return capacity - sum(demands[node] for node in route)
