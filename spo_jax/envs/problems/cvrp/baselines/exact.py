"""The best routes of a handful of customers, over all ways to divide them into routes."""

import math
from collections.abc import Mapping

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.limits import UNBOUNDED, limits_of
from spo_jax.envs.problems.cvrp.rules import CVRPRules, Routes
from spo_jax.errors import InputError

# Customers: of so few 35% are one or two, and programs that take out no more may never leave a
# local optimum.
MOST = 8

Orders = Mapping[int, tuple[float, list[int]]]  # of a set of customers: bit k - 1 is customer k


def best_routes(instance: Instance) -> Routes:
    """The shortest feasible routes of at most MOST customers. Raises InputError without any."""
    limits = limits_of(instance)
    vehicles = UNBOUNDED if limits is None else limits.max_vehicles
    return divided(instance, _best_orders(instance), vehicles)


def divided(instance: Instance, orders: Orders, vehicles: int = UNBOUNDED) -> Routes:
    """The shortest routes of all customers.

    Args:
        instance: Of the customers.
        orders: The shortest route of each set of customers that one can serve, and its length.
        vehicles: The most routes.

    Raises:
        InputError: There are none.
    """
    whole = (1 << instance.size) - 1
    best: tuple[float, Routes] = math.inf, []
    found: dict[int, tuple[float, Routes]] = {0: (0.0, [])}  # with one route more each time
    for _ in range(min(vehicles, instance.size)):
        grown: dict[int, tuple[float, Routes]] = {}
        for served, (cost, routes) in found.items():
            first = ~served & served + 1  # the first customer who waits is in the next route
            for members, (length, order) in orders.items():
                if members & first and not members & served:
                    total, both = cost + length, served | members
                    if both not in grown or total < grown[both][0]:
                        grown[both] = total, [*routes, order]
        found = grown
        best = min(best, found.get(whole, best), key=lambda each: each[0])
    if best[0] == math.inf:
        raise InputError(f"{instance.name} has no solution within its limits")
    return best[1]


def _best_orders(instance: Instance) -> Orders:
    """The shortest route of each set of customers (Held and Karp, 1962)."""
    rows, demands, capacity = CVRPRules(instance).arguments("rows")
    limits, size = limits_of(instance), instance.size
    # The shortest ways from the depot over all of a set, by the last of them.
    ways: dict[int, dict[int, tuple[float, list[int]]]] = {
        1 << node - 1: {node: (rows[0][node], [node])} for node in range(1, size + 1)
    }
    found: dict[int, tuple[float, list[int]]] = {}
    for members in range(1, 1 << size):
        inside = [node for node in range(1, size + 1) if members >> node - 1 & 1]
        if sum(demands[node] for node in inside) > capacity:
            continue
        if len(inside) > 1:
            ways[members] = {
                last: min(
                    (length + rows[node][last], [*order, last])
                    for node, (length, order) in ways[members ^ 1 << last - 1].items()
                )
                for last in inside
            }
        length, order = min(
            (length + rows[last][0], order) for last, (length, order) in ways[members].items()
        )
        # Of one set the shortest route is also the soonest done: all have the same service.
        if limits is None or not limits.excess(rows, [order]):
            found[members] = length, order
    return found
