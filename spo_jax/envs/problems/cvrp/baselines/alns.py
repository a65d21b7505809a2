"""ALNS for the CVRP: Ropke and Pisinger's operators without time windows and with a free fleet.

Removals: random, worst, and Shaw's, whose relatedness weighs the distance and the difference of the
demands as published (9 and 2, both scaled to at most 1). Insertions: greedy and regret-2, -3, -4
and -m over the routes there are and one empty route.
"""

import random
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.alns import Found, Operators, Settings, search
from spo_jax.envs.problems.cvrp.files.cvrplib import demands_of, routes_cost
from spo_jax.envs.problems.cvrp.limits import limits_of
from spo_jax.envs.problems.cvrp.rules import CVRPRules, Routes
from spo_jax.seeding import numpy_rng

_DISTANCE, _DEMAND = 9.0, 2.0  # phi and psi of the relatedness


def alns(
    instance: Instance,
    seed: int = 0,
    *,
    steps: int = 500,
    seconds: float | None = None,
    report: Callable[[Routes], None] = lambda routes: None,
) -> Routes:
    """The best routes of `steps` iterations, from those that regret-2 insertion builds.

    seconds: of wall-clock time, instead of steps. report: is told each new best solution.
    """
    return alns_search(instance, seed, Settings(iterations=steps), seconds, report).solution


def alns_search(
    instance: Instance,
    seed: int,
    settings: Settings,
    seconds: float | None = None,
    report: Callable[[Routes], None] = lambda routes: None,
) -> Found:
    """As `alns`, with the best cost of every step and the final weights."""
    rng = numpy_rng("alns", instance.digest, seed)
    return search(RouteOperators(instance, settings), rng, settings, seconds, report)


class RouteOperators(Operators):
    """A solution and a partial one is Routes.

    relatedness: [N, N] what counts in Shaw's removal besides distance and demand.
    """

    def __init__(self, instance: Instance, settings: Settings, relatedness: Any = 0.0):
        self._demands, self._capacity = demands_of(instance)
        self._instance, self._limits = instance, limits_of(instance)
        self._most = np.inf if self._limits is None else self._limits.max_vehicles
        apart = np.abs(self._demands[:, None] - self._demands)
        relatedness = _DISTANCE * scaled(instance.dist) + _DEMAND * scaled(apart) + relatedness
        regrets = {"greedy": 1, "regret-2": 2, "regret-3": 3, "regret-4": 4, "regret-m": None}
        customers = np.arange(1, instance.size + 1)
        super().__init__(instance, settings, customers, relatedness, regrets)

    def start(self) -> Routes:
        """Regret-2 insertion into no routes at all; where these are too many, fewer."""
        routes = self.insert([], self.nodes.tolist(), 0.0, np.random.default_rng(0), 2)
        if len(routes) > self._most:
            return CVRPRules(self._instance).within_fleet(routes, random.Random(0))
        return routes

    def cost(self, routes: Routes) -> float:
        """Infinite for more routes than there are vehicles."""
        return routes_cost(self.dist, routes) if len(routes) <= self._most else np.inf

    def key(self, routes: Routes) -> bytes:
        """The routes in order, each from its smaller end where the direction does not matter."""
        turned = sorted(
            route if self.directed or route[0] <= route[-1] else route[::-1] for route in routes
        )
        return np.array([*chain.from_iterable([*route, 0] for route in turned)], np.int32).tobytes()

    def without(self, routes: Routes, removed: list[int]) -> Routes:
        gone = set(removed)
        kept = [[node for node in route if node not in gone] for route in routes]
        return [route for route in kept if route]

    def neighbors(self, routes: Routes) -> tuple[list[int], list[int]]:
        before, after = [0] * (self.size + 1), [0] * (self.size + 1)
        for route in routes:
            for a, b in zip([0, *route], [*route, 0], strict=True):
                after[a], before[b] = b, a
        return before, after

    def insert(
        self,
        routes: Routes,
        removed: list[int],
        noise: float,
        rng: np.random.Generator,
        compared: int | None,
    ) -> Routes:
        """`routes` with all `removed`, by regret over each customer's cheapest routes.

        compared: how many routes; None is all. Every step inserts, at its cheapest place, the
        customer that loses most if it had to take its other routes. One that fits into fewer than
        that many routes comes first, the fewer the earlier. Ties go to the cheaper insertion.
        """
        demands, count = self._demands, len(removed)
        routes = [*map(list, routes), []]  # the last one is the empty route
        left = np.array(removed)
        room = [self._capacity - int(demands[route].sum()) for route in routes]
        limits = self._limits
        service = np.zeros(self.size + 1) if limits is None else np.array(limits.service)
        never = 1e6 * max(self.longest, 1e-300)  # the cost of a route that has no room
        cost = np.empty((count, len(routes) + count))  # [K, routes], spare columns for new ones

        def assess(r: int) -> None:
            added = np.minimum(self.places(routes[r], left).min(axis=1), never)
            fits = demands[left] <= room[r]
            if limits is not None:
                length, duration = limits.duration(self.dist, routes[r])
                fits &= length + added <= limits.max_distance
                fits &= duration + added + service[left] <= limits.max_duration
                if not routes[r] and sum(map(bool, routes)) >= limits.max_vehicles:
                    added = np.minimum(added + never / 2, never)  # only where nothing else fits
            cost[:count, r] = np.where(fits, added, never)

        for r in range(len(routes)):
            assess(r)
        while count:
            used = len(routes)
            seen = cost[:count, :used]
            if noise:
                shaken = np.maximum(0.0, seen + rng.uniform(-noise, noise, seen.shape))
                seen = np.where(seen < never, shaken, never)
            lowest = seen.min(axis=1)
            if compared == 1:
                k = int(lowest.argmin())
            else:
                several = min(compared or used, used)
                best = seen if several == used else np.partition(seen, several - 1)[:, :several]
                regret = best.sum(axis=1) - several * lowest
                k = int(np.lexsort((lowest, -regret))[0])
            r, node = int(seen[k].argmin()), int(left[k])
            place = int(self.places(routes[r], left[k : k + 1]).argmin())
            routes[r].insert(place, node)
            room[r] -= int(demands[node])
            count -= 1
            left[k], cost[k] = left[count], cost[count]
            left = left[:count]
            if r == used - 1:
                routes.append([])
                room.append(self._capacity)
                if limits is None:
                    cost[:count, used] = cost[:count, r]
                else:
                    assess(used)
            assess(r)
        return routes[:-1]

    def places(self, route: list[int], customers: np.ndarray) -> np.ndarray:
        """[K, L + 1] what each place of a route of L adds for each of K customers, by distance."""
        walk = np.array([0, *route, 0])
        near = self.dist[customers[:, None], walk]
        to = self.back[customers[:, None], walk] if self.directed else near
        return to[:, :-1] + near[:, 1:] - self.dist[walk[:-1], walk[1:]]


def scaled(matrix: np.ndarray) -> np.ndarray:
    """At most 1."""
    return matrix / (matrix.max() or 1)
