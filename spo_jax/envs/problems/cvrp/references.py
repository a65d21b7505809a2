"""Reference routes: the best of PyVRP's from several seeds.

Appendix B uses one timed run. A run is limited here by iterations instead of seconds, because only
that is repeatable. PyVRP works on integers, so float distances are scaled and rounded for its
search.
"""

import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files import check_routes, demands_of, routes_cost
from spo_jax.envs.problems.tsp.weights import scaled
from spo_jax.errors import InputError, MissingExtra
from spo_jax.seeding import derive

# By effort: iterations per customer and seed, and seeds. On one core of 2020s make, PyVRP does
# about 2,000 iterations a second, so that each seed of "paper" costs about what Appendix B.2
# grants: 10 seconds at n = 50 to 60 at n = 200.
EFFORTS = {"quick": (20, 1), "standard": (100, 3), "paper": (500, 3)}

# The largest scaled edge: PyVRP caps its penalty for a unit of excess load at 1e5, which has to
# outweigh a detour.
_LARGEST = 150_000


def solve_reference(instance: Instance, effort: str) -> tuple[list[list[int]], str, bool]:
    """Routes, who found them how, and False: they are not proven best. Raises MissingExtra."""
    iterations, seeds = EFFORTS[effort][0] * instance.size, EFFORTS[effort][1]
    runs = [pyvrp(instance, seed, iterations) for seed in range(seeds)]
    best = min(runs, key=lambda routes: routes_cost(instance.dist, routes))
    each = f"best of {seeds} seeds, {iterations} iterations each"
    said = each if seeds > 1 else f"{iterations} iterations"
    return best, f"PyVRP {version('pyvrp')}, {said}", False


def pyvrp(
    instance: Instance,
    seed: int = 0,
    iterations: int | None = None,
    *,
    seconds: float | None = None,
    report: Callable[[list[list[int]]], None] | None = None,
) -> list[list[int]]:
    """Routes by PyVRP, with as many vehicles as customers. It uses one thread.

    The same call gives the same routes. iterations: 100 per customer unless given. seconds: of
    wall-clock time, instead; these do not repeat. report: is told each new best. Raises
    MissingExtra without PyVRP, InputError if it finds no feasible routes in that time.
    """
    began = time.monotonic()
    demands, capacity = demands_of(instance)
    try:
        import pyvrp as library
        from pyvrp import Client, Depot, Location, ProblemData, SolveParams, VehicleType, solve
        from pyvrp.stop import MaxIterations
    except ImportError:
        raise MissingExtra("pyvrp 0.14", "solvers") from None
    n = instance.size
    weights: Any = scaled(instance.dist, _LARGEST)
    data = ProblemData(
        locations=[Location(x=float(x), y=float(y)) for x, y in instance.coords],
        clients=[Client(k, delivery=[int(demands[k])]) for k in range(1, n + 1)],
        depots=[Depot(0)],
        vehicle_types=[VehicleType(n, capacity=[capacity])],
        distance_matrices=[weights],
        duration_matrices=[np.zeros_like(weights)],
    )

    class Told(library.IteratedLocalSearchCallbacks):
        """Reports the best solutions as they are found."""

        def on_start(self, algorithm: Any) -> None:
            self.on_best(algorithm.initial_solution)

        def on_best(self, best: Any) -> None:
            if report is not None and best.is_feasible():
                report(_routes(best))

    params = SolveParams(ils=library.IteratedLocalSearchParams(callbacks=Told()))
    stop: Any = MaxIterations(100 * n if iterations is None else iterations)
    if seconds is not None:
        end = began + seconds  # PyVRP's own limit would not count its first solution

        def stop(best_cost: int) -> bool:
            return time.monotonic() >= end

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about penalties; the routes are checked below
        drawn = derive("pyvrp", seed) % 2**32
        result = solve(data, stop, seed=drawn, collect_stats=False, params=params)
    if not result.is_feasible():
        raise InputError(f"PyVRP found no feasible routes for {instance.name}: more iterations")
    routes = _routes(result.best)
    check_routes(instance, routes)
    return routes


def _routes(solution: Any) -> list[list[int]]:
    """The routes of a solution of PyVRP's, whose clients begin at 0."""
    return [
        [activity.idx + 1 for activity in route.schedule() if activity.is_client()]
        for route in solution.routes()
    ]
