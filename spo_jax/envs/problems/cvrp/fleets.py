"""Routes for a limited number of vehicles, by a search with absent customers.

It is the fleet minimisation of SISR (Christiaens and Vanden Berghe, 2020): customers who fit into
no route are absent, and a change is accepted where those who are absent then have been so less
often.

Workers import this module: keep its imports light.
"""

import math
import random
from collections.abc import Sequence
from typing import Any

from spo_jax.envs.problems.cvrp import kit
from spo_jax.envs.problems.cvrp.limits import Limits

STEPS = 40_000  # of a search, at most
WORK = 8_000_000  # steps times customers, at most
REMOVED = (5, 20)  # customers, fewest and most of a step
LENGTHS = (2, 4, 10)  # of the longest string of a step, drawn
BLINK = 0.01
WARMTH = 0.1  # temperature in mean lengths per customer

Routes = list[list[int]]


class Fleet:
    """Few routes of one instance.

    rows: `rows[a][b]` is the way from a to b. limits: `max_vehicles` is the most routes.
    """

    def __init__(self, rows: Any, demands: Sequence[int], capacity: int, limits: Limits):
        self._given = ([list(map(float, row)) for row in rows], list(demands), capacity)
        self._limits, self._most = limits, limits.max_vehicles

    def reduced(self, routes: Routes, rng: random.Random, steps: int = STEPS) -> Routes | None:
        """Feasible routes, few enough, made from the fullest of these; None where none are found.

        Each step removes strings of customers around one that is drawn, every other time beside
        one who is absent, and inserts them and all who are absent.
        """
        kit.prepare(*self._given, self._limits)
        try:
            return self._searched(routes, rng, steps)
        finally:
            kit.release(*self._given, self._limits)

    def _searched(self, routes: Routes, rng: random.Random, steps: int) -> Routes | None:
        dist, demands, _ = self._given
        size = len(demands) - 1
        fullest = sorted(routes, key=lambda route: -sum(map(demands.__getitem__, route)))
        kept = fullest[: self._most]
        visited = {node for route in kept for node in route}
        waiting = [node for node in range(1, size + 1) if node not in visited]
        routes, absent = self._inserted(kept, rng.sample(waiting, len(waiting)), 0.0, rng)
        length = kit.cost(dist, routes)
        times = [1] * len(demands)  # of each customer: steps of being absent
        for _ in range(min(steps, WORK // size)):
            if not absent:
                break
            center = rng.choice(absent) if rng.random() < 0.5 else rng.randint(1, size)
            if center in absent:
                there = [node for route in routes for node in route]
                center = min(there, key=dist[center].__getitem__)
            partial, removed = kit.string_removal(
                dist, routes, center, rng.randint(*REMOVED), rng, length=rng.choice(LENGTHS), gap=1
            )
            order = self._ordered(removed + absent, rng)
            tried, left = self._inserted([route for route in partial if route], order, BLINK, rng)
            longer = kit.cost(dist, tried) - length
            seldom = sum(map(times.__getitem__, left)) - sum(map(times.__getitem__, absent))
            slack = -WARMTH * length / size * math.log(1.0 - rng.random())
            for node in left:
                times[node] += 1
            if seldom < 0 or (seldom == 0 and len(left) <= len(absent) and longer < slack):
                routes, absent, length = tried, left, length + longer
        return None if absent else routes

    def _ordered(self, customers: list[int], rng: random.Random) -> list[int]:
        """At random, the largest first, the farthest from the depot first or the nearest."""
        dist, demands, _ = self._given
        order, kind = rng.sample(customers, len(customers)), rng.randrange(4)
        if kind == 0:
            order.sort(key=lambda node: -demands[node])
        elif kind == 1:
            order.sort(key=lambda node: -dist[0][node])
        elif kind == 2:
            order.sort(key=dist[0].__getitem__)
        return order

    def _inserted(
        self, routes: Routes, order: list[int], blink: float, rng: random.Random
    ) -> tuple[Routes, list[int]]:
        """Routes with these customers, each at its cheapest place, and those who fit into none.

        The kit opens a route too many for a customer who fits nowhere. Others may follow it there,
        so they are tried once more.
        """
        full, _ = kit.ordered_insertion(*self._given, routes, order, blink=blink, rng=rng)
        kept = full[: self._most]
        absent = []
        for node in [node for route in full[self._most :] for node in route]:
            more, _ = kit.ordered_insertion(*self._given, kept, [node])
            if len(more) > self._most:
                absent.append(node)
            else:
                kept = more
        return kept, absent
