"""How `spo solve` starts on a CVRP instance, and how it divides a large one: into parts that
programs see, and into shares of searches that run side by side.

Workers import this module: keep its imports light.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from spo_jax.envs.problem import Instance, Part, Problem
from spo_jax.envs.problems.cvrp.limits import limits_of
from spo_jax.envs.problems.cvrp.rules import CVRPRules, Routes
from spo_jax.envs.rules import encoded

SWEEPS = 20  # of the local search of a start, at most
Search = Callable[[Routes], Routes]  # a local search
MOST_PAIRED, PAIRED = 1000, 100  # of more customers only the savings with so many nearest count


def construct(instance: Instance, until: float = math.inf) -> Routes:
    """Clarke and Wright's savings, then the kit's 2-opt*, Or-opt and 2-opt until none gains.

    Of a large instance only the savings of near customers; where these take more vehicles than
    there are, they are changed as `CVRPRules.within_fleet` has it, which may raise InputError.
    Where the kit is not compiled, that alone. O(n^2 log n). No local search begins at `until`, a
    time.monotonic(), or later.
    """
    from spo_jax.envs.problems.cvrp import kit
    from spo_jax.envs.problems.cvrp.baselines.heuristics import clarke_wright, near_savings
    from spo_jax.envs.problems.cvrp.files.cvrplib import demands_of, routes_cost

    small = instance.size <= MOST_PAIRED
    routes = clarke_wright(instance) if small else near_savings(instance, PAIRED)
    limits = limits_of(instance)
    if limits is not None and len(routes) > limits.max_vehicles:
        routes = CVRPRules(instance).within_fleet(routes, random.Random(0))
    if not kit.NATIVE or time.monotonic() >= until:
        return routes
    demands, capacity = demands_of(instance)
    dist, customers = instance.dist, list(range(1, instance.size + 1))
    given = dist, demands, capacity
    kit.prepare(*given, limits)
    searches: list[Search] = [
        lambda routes: kit.two_opt_star(*given, routes, customers, moves=1 << 30),
        lambda routes: kit.or_opt(*given, routes, customers, moves=1 << 30),
        lambda routes: kit.two_opt(dist, routes, customers, moves=1 << 30),
    ]
    return polished(routes, searches, lambda routes: routes_cost(dist, routes), until)


def polished(
    routes: Routes,
    searches: Sequence[Search],
    cost: Callable[[Routes], float],
    until: float = math.inf,
) -> Routes:
    """Routes after these local searches by turns, until all together gain nothing.

    No search begins at `until`, a time.monotonic(), or later.
    """
    lowest = cost(routes)
    for _ in range(SWEEPS):
        better = routes
        for search in searches:
            if time.monotonic() < until:
                better = search(better)
        lower = cost(better)
        if lower >= lowest:
            break
        routes, lowest = better, lower
    return routes


def part(
    instance: Instance, routes: Routes, center: int, size: int, within: Sequence[int] | None = None
) -> Part:
    """Whole routes near customer `center` + 1, two at least, then as many as hold `size` customers.

    A route is as near as its nearest customer. Arrays of the instance's `extra` are rows [N], and
    the vehicles of other routes are none of the part's. within: the share of `shares` that it
    stays in.
    """
    routes = [route for route in routes if route]
    apart: Routes = []
    if within is not None:
        share = set(within)
        apart = [route for route in routes if route[0] - 1 not in share]
        routes = [route for route in routes if route[0] - 1 in share]
    row = instance.dist[center + 1]
    firsts = np.cumsum([0, *map(len, routes[:-1])])
    near = np.minimum.reduceat(row[list(chain.from_iterable(routes))], firsts)
    near[next(r for r, route in enumerate(routes) if center + 1 in route)] = -1.0
    chosen: list[int] = []
    count = 0
    for r in np.argsort(near, kind="stable").tolist():
        if len(chosen) >= 2 and count + len(routes[r]) > size:
            break
        chosen.append(r)
        count += len(routes[r])
    names = [0, *chain.from_iterable(routes[r] for r in chosen)]
    place = {node: k for k, node in enumerate(names)}
    inside = set(chosen)
    rest = apart + [route for r, route in enumerate(routes) if r not in inside]
    assert instance.demands is not None
    extra = {
        name: value[names] if isinstance(value, np.ndarray) else value
        for name, value in instance.extra.items()
    }
    if "max_vehicles" in extra:
        extra["max_vehicles"] -= len(rest)
    seen = Instance(
        instance.problem,
        instance.name,
        len(names) - 1,
        dist=instance.dist[np.ix_(names, names)],
        demands=instance.demands[names],
        capacity=instance.capacity,
        extra=extra,
    )

    def whole(solution: Routes) -> Routes:
        return [*rest, *([names[k] for k in route] for route in solution if route)]

    return Part(seen, [[place[node] for node in routes[r]] for r in chosen], whole)


def shares(instance: Instance, routes: Routes, count: int, luck: random.Random) -> list[list[int]]:
    """Whole routes, two at least in each share, cut in two until there are `count` shares.

    A cut lies between a customer that is drawn and the one farthest from it: routes are in the
    order of how much nearer they are to the one than to the other, on the mean. O(N log count).
    """
    dist = instance.dist
    assert dist is not None

    def cut(routes: Routes, count: int) -> list[Routes]:
        if count < 2:
            return [routes]
        nodes = [*chain.from_iterable(routes)]
        near = luck.choice(nodes)
        far = nodes[int(dist[near, nodes].argmax())]
        lengths = [*map(len, routes)]
        sides = np.add.reduceat(
            dist[near, nodes] - dist[far, nodes], np.cumsum([0, *lengths[:-1]])
        ) / np.array(lengths)
        ordered = [routes[r] for r in np.argsort(sides, kind="stable").tolist()]
        first = count // 2
        held = np.cumsum([*map(len, ordered)])
        middle = 1 + int(np.abs(held - len(nodes) * first / count).argmin())
        middle = min(max(middle, 2 * first), len(routes) - 2 * (count - first))
        return cut(ordered[:middle], first) + cut(ordered[middle:], count - first)

    routes = [route for route in routes if route]
    cuts = cut(routes, min(count, len(routes) // 2))
    return [[node - 1 for route in each for node in route] for each in cuts]


def joined(shares: Sequence[Sequence[int]], solutions: Sequence[Routes]) -> Routes:
    """The routes of solution k that visit share k, of all shares."""
    found: Routes = []
    for items, routes in zip(shares, solutions, strict=True):
        share = set(items)
        found += [route for route in routes if route and route[0] - 1 in share]
    return found


class RoutingProblem(Problem):
    """What problems have in common whose solutions are routes of customers."""

    unit = "customers"
    whole, region = 300, 150

    def encode(self, instance: Instance, solution: Routes) -> list[int]:
        return encoded(solution)

    def walks(self, instance: Instance, solution: Sequence[Sequence[int]]) -> list[list[int]]:
        return [[0, *route, 0] for route in solution if len(route)]

    def part(
        self,
        instance: Instance,
        solution: Routes,
        center: int,
        size: int,
        within: Sequence[int] | None = None,
    ) -> Part:
        return part(instance, solution, center, size, within)

    def shares(
        self, instance: Instance, solution: Routes, count: int, luck: random.Random
    ) -> list[list[int]]:
        return shares(instance, solution, count, luck)

    def joined(self, shares: Sequence[Sequence[int]], solutions: Sequence[Routes]) -> Routes:
        return joined(shares, solutions)
