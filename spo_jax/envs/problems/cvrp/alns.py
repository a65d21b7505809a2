"""ALNS for the CVRP: Ropke and Pisinger's operators without time windows and with a free fleet.

Removals: random, worst, and Shaw's, whose relatedness weighs the distance and the difference of the
demands as published (9 and 2, both scaled to at most 1). Insertions: greedy and regret-2, -3, -4
and -m over the routes there are and one empty route.
"""

from collections.abc import Mapping
from functools import partial
from itertools import chain
from math import fsum

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.alns import Found, Insertion, Removal, Settings, related, search, worst
from spo_jax.envs.problems.cvrp.files import demands_of
from spo_jax.seeding import numpy_rng

Routes = list[list[int]]
_REGRETS = {"greedy": 1, "regret-2": 2, "regret-3": 3, "regret-4": 4, "regret-m": None}
_DISTANCE, _DEMAND = 9.0, 2.0  # phi and psi of the relatedness


def alns(instance: Instance, seed: int = 0, *, steps: int = 500) -> Routes:
    """The best routes of `steps` iterations, from those that regret-2 insertion builds."""
    return alns_search(instance, seed, Settings(iterations=steps)).solution


def alns_search(instance: Instance, seed: int = 0, settings: Settings | None = None) -> Found:
    """As `alns`, with the best cost of every step and the final weights."""
    settings = settings or Settings()
    rng = numpy_rng("alns", instance.digest, seed)
    return search(RouteOperators(instance, settings), rng, settings)


class RouteOperators:
    """See `spo_jax.envs.problems.alns.Operators`; a solution and a partial one is Routes."""

    def __init__(self, instance: Instance, settings: Settings):
        self._dist = dist = instance.dist
        self._demands, self._capacity = demands_of(instance)
        self._settings = settings
        self._customers = np.arange(1, instance.size + 1)
        self.size = instance.size
        self.longest = float(dist.max())
        apart = np.abs(self._demands[:, None] - self._demands)
        self._relatedness = _DISTANCE * _scaled(dist) + _DEMAND * _scaled(apart)
        self.removals: Mapping[str, Removal] = {
            "random": self._random,
            "worst": self._worst,
            "shaw": self._shaw,
        }
        self.insertions: Mapping[str, Insertion] = {
            name: partial(self._insert, compared=compared) for name, compared in _REGRETS.items()
        }

    def start(self) -> Routes:
        """Regret-2 insertion into no routes at all."""
        return self._insert([], self._customers.tolist(), 0.0, np.random.default_rng(0), 2)

    def cost(self, routes: Routes) -> float:
        walk = [0, *chain.from_iterable([*route, 0] for route in routes)]
        return fsum(self._dist[walk[:-1], walk[1:]].tolist())

    def key(self, routes: Routes) -> bytes:
        """Each route from its smaller end, in order."""
        told = sorted(route if route[0] <= route[-1] else route[::-1] for route in routes)
        return np.array([*chain.from_iterable([*route, 0] for route in told)], np.int32).tobytes()

    # --- removals ---------------------------------------------------------------------------------

    def _without(self, routes: Routes, removed: list[int]) -> tuple[Routes, list[int]]:
        gone = set(removed)
        kept = [[node for node in route if node not in gone] for route in routes]
        return [route for route in kept if route], removed

    def _random(
        self, routes: Routes, count: int, rng: np.random.Generator
    ) -> tuple[Routes, list[int]]:
        return self._without(routes, rng.choice(self._customers, count, replace=False).tolist())

    def _worst(
        self, routes: Routes, count: int, rng: np.random.Generator
    ) -> tuple[Routes, list[int]]:
        before, after = [0] * (self.size + 1), [0] * (self.size + 1)
        for route in routes:
            for a, b in zip([0, *route], [*route, 0], strict=True):
                after[a], before[b] = b, a
        chosen = worst(
            self._dist, (before, after), self._customers, count, self._settings.worst, rng
        )
        return self._without(routes, chosen)

    def _shaw(
        self, routes: Routes, count: int, rng: np.random.Generator
    ) -> tuple[Routes, list[int]]:
        exponent = self._settings.shaw
        return self._without(
            routes, related(self._relatedness, self._customers, count, exponent, rng)
        )

    # --- insertions -------------------------------------------------------------------------------

    def _insert(
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
        noise: the amplitude of what is added to every cost that is compared.
        """
        dist, demands, count = self._dist, self._demands, len(removed)
        routes = [*map(list, routes), []]  # the last one is the empty route
        left = np.array(removed)
        room = [self._capacity - int(demands[route].sum()) for route in routes]
        never = 1e6 * max(self.longest, 1e-300)  # the cost of a route that has no room
        cost = np.empty((count, len(routes) + count))  # [K, routes], spare columns for new ones

        def assess(r: int) -> None:
            walk = np.array([0, *routes[r], 0])
            near = dist[left[:, None], walk]
            added = (near[:, :-1] + near[:, 1:] - dist[walk[:-1], walk[1:]]).min(axis=1)
            cost[:count, r] = np.where(demands[left] <= room[r], added, never)

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
            routes[r].insert(self._place(routes[r], node), node)
            room[r] -= int(demands[node])
            count -= 1
            left[k], cost[k] = left[count], cost[count]
            left = left[:count]
            if r == used - 1:
                routes.append([])
                room.append(self._capacity)
                cost[:count, used] = cost[:count, r]
            assess(r)
        return routes[:-1]

    def _place(self, route: list[int], node: int) -> int:
        walk = np.array([0, *route, 0])
        near = self._dist[node, walk]
        return int((near[:-1] + near[1:] - self._dist[walk[:-1], walk[1:]]).argmin())


def _scaled(matrix: np.ndarray) -> np.ndarray:
    """At most 1."""
    return matrix / (matrix.max() or 1)
