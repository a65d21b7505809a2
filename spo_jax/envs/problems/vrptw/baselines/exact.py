"""The best routes of a handful of customers, by trying every order."""

import math

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.vrptw.rules import VRPTWRules, latest
from spo_jax.errors import InputError

# Customers: of so few 35% are one or two, and programs that take out no more may never leave a
# local optimum. 110,000 orders of some of them, less than a second.
MOST = 8


def best_routes(instance: Instance) -> Routes:
    """The shortest feasible routes of at most MOST customers. Raises InputError without any."""
    orders = _best_orders(instance)
    whole = (1 << instance.size) - 1
    best: list[tuple[float, Routes]] = [(math.inf, []) for _ in range(whole + 1)]
    best[0] = 0.0, []
    for members in range(1, whole + 1):
        lowest = members & -members
        part = members
        while part:  # the sets of some of them, of which the first customer's route is one
            if part & lowest and part in orders:
                cost, order = orders[part]
                rest, routes = best[members ^ part]
                if cost + rest < best[members][0]:
                    best[members] = cost + rest, [*routes, order]
            part = (part - 1) & members
    cost, routes = best[whole]
    if cost == math.inf:
        raise InputError(f"{instance.name} has no solution")
    return routes


def _best_orders(instance: Instance) -> dict[int, tuple[float, list[int]]]:
    """The shortest route of each set of customers that one can serve; bit k - 1 is customer k."""
    rows, demands, capacity, ready, _, service = VRPTWRules(instance).arguments("rows")
    due = latest(instance).tolist()
    found: dict[int, tuple[float, list[int]]] = {}

    def extend(route: list[int], members: int, length: float, clock: float, load: int) -> None:
        last = route[-1] if route else 0
        if route and clock + rows[last][0] <= due[0]:
            total = length + rows[last][0]
            if total < found.get(members, (math.inf, []))[0]:
                found[members] = total, list(route)
        for node in range(1, instance.size + 1):
            begins = clock + rows[last][node]
            late = begins > due[node]
            if late or members >> node - 1 & 1 or load + demands[node] > capacity:
                continue
            leaves = max(begins, ready[node]) + service[node]
            route.append(node)
            extend(
                route,
                members | 1 << node - 1,
                length + rows[last][node],
                leaves,
                load + demands[node],
            )
            route.pop()

    extend([], 0, 0.0, ready[0], 0)
    return found
