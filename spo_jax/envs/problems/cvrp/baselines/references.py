"""Reference routes: the best of PyVRP's from several seeds.

Appendix B uses one timed run. A run is limited here by iterations instead of seconds, because only
that is repeatable. PyVRP works on integers, so float distances are scaled and rounded for its
search.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files.cvrplib import check_routes, demands_of, routes_cost
from spo_jax.envs.problems.cvrp.limits import Limits, allowed, limits_of
from spo_jax.envs.problems.tsp.files.weights import scaled
from spo_jax.errors import InputError, MissingExtra
from spo_jax.seeding import derive

# By effort: iterations per customer and seed, and seeds. On one core of 2020s make, PyVRP does
# about 2,000 iterations a second, so that each seed of "paper" costs about what Appendix B.2
# grants: 10 seconds at n = 50 to 60 at n = 200.
EFFORTS = {"quick": (20, 1), "standard": (100, 3), "paper": (500, 3)}

# The largest scaled edge: PyVRP caps its penalty for a unit of excess load at 1e5, which has to
# outweigh a detour.
LARGEST = 150_000
NEVER = int(np.iinfo(np.int64).max)  # later than all times


def solve_reference(instance: Instance, effort: str) -> tuple[list[list[int]], str, bool]:
    """Routes, who found them how, and False: they are not proven best. Raises MissingExtra."""
    return best_of(pyvrp, instance, effort)


def best_of(
    solve: Callable[..., list[list[int]]], instance: Instance, effort: str
) -> tuple[list[list[int]], str, bool]:
    """The shortest routes of `solve` from the seeds of an effort; see `solve_reference`."""
    iterations, seeds = EFFORTS[effort][0] * instance.size, EFFORTS[effort][1]
    runs = [solve(instance, seed, iterations) for seed in range(seeds)]
    best = min(runs, key=lambda routes: routes_cost(instance.dist, routes))
    each = f"best of {seeds} seeds, {iterations} iterations each"
    detail = each if seeds > 1 else f"{iterations} iterations"
    return best, f"PyVRP {version('pyvrp')}, {detail}", False


def pyvrp(
    instance: Instance,
    seed: int = 0,
    iterations: int | None = None,
    *,
    seconds: float | None = None,
    report: Callable[[list[list[int]]], None] | None = None,
) -> list[list[int]]:
    """Routes by PyVRP, with as many vehicles as customers or as there are. It uses one thread.

    The same call gives the same routes. iterations: 100 per customer unless given. seconds: of
    wall-clock time, instead; these do not repeat. report: is told each new best. Raises
    MissingExtra without PyVRP, InputError if it finds no feasible routes in that time.
    """
    began = time.monotonic()
    limits = limits_of(instance)
    data = data_of(instance, None if limits is None else limited_times(instance, limits))
    routes = solved(instance, data, seed, iterations, seconds, began, report)
    check_routes(instance, routes)
    return routes


@dataclass(frozen=True)
class Times:
    """Times on integers, of a problem with time windows or limits.

    weights, durations: [N, N] int64 lengths of edges and how long they take. early, late, service:
    [N] int64, when service may begin and how long it takes. longest, lasting: the limits of a
    route's length and duration.
    """

    weights: np.ndarray
    durations: np.ndarray
    early: np.ndarray
    late: np.ndarray
    service: np.ndarray
    longest: int = NEVER
    lasting: int = NEVER


def limited_times(instance: Instance, limits: Limits, largest: int = LARGEST) -> Times:
    """Limits on integers. What is no whole number is scaled by a power of two and rounded up, so
    that a route which is within them there is so here.
    """
    dist, service = instance.dist, np.array(limits.service)
    top, scale = float(dist.max(initial=0.0)), 1.0
    whole = (dist == np.rint(dist)).all() and (service == np.rint(service)).all()
    if top > largest or not whole:
        scale = 2.0 ** math.floor(math.log2(largest / (top or 1.0)))
    weights = np.ceil(dist * scale).astype(np.int64)

    def bound(limit: float) -> int:
        return math.floor(allowed(limit) * scale) if limit < math.inf else NEVER

    return Times(
        weights=weights,
        durations=weights,
        early=np.zeros(len(dist), np.int64),
        late=np.full(len(dist), NEVER),
        service=np.ceil(service * scale).astype(np.int64),
        longest=bound(limits.max_distance),
        lasting=bound(limits.max_duration),
    )


def data_of(instance: Instance, times: Times | None = None) -> Any:
    """An instance as PyVRP's ProblemData. Raises MissingExtra."""
    demands, capacity = demands_of(instance)
    try:
        from pyvrp import Client, Depot, Location, ProblemData, VehicleType
    except ImportError:
        raise MissingExtra("pyvrp 0.14", "solvers") from None
    n = instance.size
    coords = np.zeros((n + 1, 2)) if instance.coords is None else instance.coords  # its pictures
    of: list[dict[str, Any]] = [{} for _ in range(n + 1)]
    bounds: dict[str, Any] = {}
    if times is None:
        weights: Any = scaled(instance.dist, LARGEST)
        durations: Any = np.zeros_like(weights)
    else:
        weights, durations = times.weights, times.durations
        for k, own in enumerate(of):
            own |= {"tw_early": int(times.early[k]), "tw_late": int(times.late[k])}
            own["service_duration"] = int(times.service[k])
        bounds = {"max_distance": times.longest, "shift_duration": times.lasting}
    limits = limits_of(instance)
    fleet = n if limits is None else min(n, limits.max_vehicles)
    return ProblemData(
        locations=[Location(x=float(x), y=float(y)) for x, y in coords],
        clients=[Client(k, delivery=[int(demands[k])], **of[k]) for k in range(1, n + 1)],
        depots=[Depot(0, **of[0])],
        vehicle_types=[VehicleType(fleet, capacity=[capacity], **bounds)],
        distance_matrices=[weights],
        duration_matrices=[durations],
    )


def solved(
    instance: Instance,
    data: Any,
    seed: int,
    iterations: int | None,
    seconds: float | None,
    began: float,
    report: Callable[[list[list[int]]], None] | None,
) -> list[list[int]]:
    """The routes that PyVRP finds for `data`; as `pyvrp`. began: from when on seconds count."""
    import pyvrp as library
    from pyvrp.stop import MaxIterations

    class ReportBest(library.IteratedLocalSearchCallbacks):
        """Reports the best solutions as they are found."""

        def on_start(self, algorithm: Any) -> None:
            self.on_best(algorithm.initial_solution)

        def on_best(self, best: Any) -> None:
            if report is not None and best.is_feasible():
                report(_routes(best))

    params = library.SolveParams(ils=library.IteratedLocalSearchParams(callbacks=ReportBest()))
    stop: Any = MaxIterations(100 * instance.size if iterations is None else iterations)
    if seconds is not None:
        end = began + seconds  # PyVRP's own limit would not count its first solution

        def stop(best_cost: int) -> bool:
            return time.monotonic() >= end

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about penalties; callers check the routes
        drawn = derive("pyvrp", seed) % 2**32
        result = library.solve(data, stop, seed=drawn, collect_stats=False, params=params)
    if not result.is_feasible():
        raise InputError(f"PyVRP found no feasible routes for {instance.name}: more iterations")
    return _routes(result.best)


def _routes(solution: Any) -> list[list[int]]:
    """The routes of a solution of PyVRP's, whose clients begin at 0."""
    return [
        [activity.idx + 1 for activity in route.schedule() if activity.is_client()]
        for route in solution.routes()
    ]
