"""ALNS for the VRPTW: Ropke and Pisinger's operators with time windows and a free fleet.

As for the CVRP, with places that are in time only; in Shaw's removal the difference of the times
counts as published (3), of the middles of the windows in place of the visits. Keys of solutions
keep the direction of routes, which matters here.
"""

from collections.abc import Callable
from itertools import chain

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.alns import Found, Settings, search
from spo_jax.envs.problems.cvrp.baselines.alns import RouteOperators, scaled
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.vrptw.baselines.heuristics import Places
from spo_jax.seeding import numpy_rng

_TIME = 3.0  # chi of the relatedness


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
    return search(TimedOperators(instance, settings), rng, settings, seconds, report)


class TimedOperators(RouteOperators):
    """Routes that keep to time windows."""

    def __init__(self, instance: Instance, settings: Settings):
        self._places = Places(instance)
        middle = (instance.extra["ready"] + instance.extra["due"]) / 2
        apart = scaled(np.abs(middle[:, None] - middle))
        super().__init__(instance, settings, _TIME * apart)

    def places(self, route: list[int], customers: np.ndarray) -> np.ndarray:
        return self._places.of(route, customers)[0]

    def key(self, routes: Routes) -> bytes:
        walks = chain.from_iterable([*route, 0] for route in sorted(routes))
        return np.array([*walks], np.int32).tobytes()
