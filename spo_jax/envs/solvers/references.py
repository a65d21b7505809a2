"""Reference costs for instances that come without one: LKH for the TSP, PyVRP for the CVRP.

Appendix B uses Concorde and one timed PyVRP run. Concorde is not on PyPI; LKH found the certified
optimum of every uniform instance up to 200 nodes that it was tried on. A run of PyVRP is limited
here by iterations instead of seconds, because only that is repeatable.

Both solvers work on integers, so float distances are scaled and rounded for the search. The cost
that is returned is ours: the float64 length of the solution in the instance's own matrix.
"""

import json
import warnings
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.cvrplib import check_routes, routes_cost
from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.textfiles import load_json, write_atomically
from spo_jax.envs.tsplib import check_tour, tour_cost
from spo_jax.errors import InputError, MissingExtra
from spo_jax.seeding import derive, numpy_rng


@dataclass(frozen=True)
class Effort:
    """How long the solvers may search."""

    lkh_runs: int
    pyvrp_iterations: int  # per customer


# On one core of 2020s make, PyVRP does about 2,000 iterations a second, so that "paper" costs
# about what Appendix B.2 grants: 10 seconds at n = 50 to 60 at n = 200.
EFFORTS = {"quick": Effort(1, 20), "standard": Effort(3, 100), "paper": Effort(10, 500)}

# The largest scaled edge. LKH multiplies by 100 and adds node penalties, all in 32-bit integers;
# PyVRP caps its penalty for a unit of excess load at 1e5, which has to outweigh a detour.
_LKH_LARGEST, _PYVRP_LARGEST = 2_000_000, 150_000


def scaled(dist: np.ndarray, largest: int) -> np.ndarray:
    """[N, N] int64: `dist` scaled so that its largest entry is `largest`.

    A matrix of integers that are small enough is left as it is.
    """
    top = float(dist.max(initial=0.0))
    if top <= largest and (dist == np.rint(dist)).all():
        return dist.astype(np.int64)
    return np.rint(dist * (largest / top)).astype(np.int64)


def lkh(instance: Instance, seed: int | None = None, runs: int = 3) -> tuple[list[int], float]:
    """A tour by LKH and its float64 length.

    LKH's own seed is fixed, so the same call gives the same tour; a `seed` shows it the nodes in
    another order. Raises MissingExtra without elkai.
    """
    n = instance.size
    if n <= 3:  # every order is the same tour
        tour = list(range(n))
        return tour, tour_cost(instance.dist, tour)
    try:
        from elkai import DistanceMatrix
    except ImportError:
        raise MissingExtra("elkai", "solvers") from None
    order = np.arange(n) if seed is None else numpy_rng("lkh", seed).permutation(n)
    # Floats would be read too, and silently answered with a bad tour.
    weights = scaled(instance.dist, _LKH_LARGEST)[np.ix_(order, order)]
    closed = DistanceMatrix(weights.tolist()).solve_tsp(runs=runs)
    tour = [int(order[k]) for k in closed[:-1]]
    check_tour(instance, tour)
    return tour, tour_cost(instance.dist, tour)


def pyvrp(
    instance: Instance, seed: int = 0, iterations: int | None = None
) -> tuple[list[list[int]], float]:
    """Routes by PyVRP and their float64 length, with as many vehicles as customers.

    The same call gives the same routes. iterations: 100 per customer unless given. Raises
    MissingExtra without PyVRP, InputError if it finds no feasible routes in that time.
    """
    if instance.demands is None or instance.capacity is None:
        raise InputError(f"{instance.name} has no demands or no capacity: it is no CVRP instance")
    try:
        from pyvrp import Client, Depot, Location, ProblemData, VehicleType, solve
        from pyvrp.stop import MaxIterations
    except ImportError:
        raise MissingExtra("pyvrp 0.14", "solvers") from None
    n = instance.size
    weights: Any = scaled(instance.dist, _PYVRP_LARGEST)
    data = ProblemData(
        locations=[Location(x=float(x), y=float(y)) for x, y in instance.coords],
        clients=[Client(k, delivery=[int(instance.demands[k])]) for k in range(1, n + 1)],
        depots=[Depot(0)],
        vehicle_types=[VehicleType(n, capacity=[instance.capacity])],
        distance_matrices=[weights],
        duration_matrices=[np.zeros_like(weights)],
    )
    stop = MaxIterations(100 * n if iterations is None else iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about penalties; the routes are checked below
        result = solve(data, stop, seed=derive("pyvrp", seed) % 2**32, collect_stats=False)
    if not result.is_feasible():
        raise InputError(f"PyVRP found no feasible routes for {instance.name}: more iterations")
    routes = [
        [activity.idx + 1 for activity in route.schedule() if activity.is_client()]
        for route in result.best.routes()
    ]
    check_routes(instance, routes)
    return routes, routes_cost(instance.dist, routes)


# --- references ---------------------------------------------------------------------------------


def reference(
    instance: Instance, effort: str = "standard", cache: str | Path | None = None
) -> Instance:
    """`instance` with a reference cost and where it comes from.

    A reference that is already there (an optimum from a file) stays. For a problem without a
    reference solver the reference stays None and reference_source says so. `effort` is a key of
    EFFORTS. `cache`, if given, is a folder of one JSON file an instance and effort, made on demand;
    an entry counts only if its solution is feasible, and its cost is computed anew.

    Raises InputError for an unknown effort, MissingExtra if the solver is not installed.
    """
    if effort not in EFFORTS:
        raise InputError(f"unknown effort {effort!r}: use {', '.join(EFFORTS)}")
    if instance.reference is not None:
        return instance
    if instance.problem not in ("tsp", "cvrp"):
        return replace(instance, reference_source=f"no reference solver for {instance.problem}")
    entry = None if cache is None else Path(cache) / f"{instance.digest}-{effort}.json"
    known = None if entry is None else _load(entry, instance)
    if known is not None:
        return replace(instance, reference=known[0], reference_source=known[1])
    solution, cost, source = _solve(instance, EFFORTS[effort])
    if entry is not None:
        _store(entry, solution, cost, source)
    return replace(instance, reference=cost, reference_source=source)


def _solve(instance: Instance, effort: Effort) -> tuple[Solution, float, str]:
    if instance.problem == "tsp":
        tour, cost = lkh(instance, runs=effort.lkh_runs)
        return tour, cost, f"LKH (elkai {version('elkai')}), runs={effort.lkh_runs}"
    iterations = effort.pyvrp_iterations * instance.size
    routes, cost = pyvrp(instance, iterations=iterations)
    return routes, cost, f"PyVRP {version('pyvrp')}, {iterations} iterations"


def _load(entry: Path, instance: Instance) -> tuple[float, str] | None:
    """The cost and source of a cache entry, or None if there is none that holds."""
    try:
        record = load_json(entry)
        solution, source = record["solution"], record["source"]
        if instance.problem == "tsp":
            check_tour(instance, solution)
            return tour_cost(instance.dist, solution), str(source)
        check_routes(instance, solution)
        return routes_cost(instance.dist, solution), str(source)
    except (InputError, KeyError, TypeError, IndexError):  # absent, damaged, or another instance's
        return None


def _store(entry: Path, solution: Solution, cost: float, source: str) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {entry.parent}: {error.strerror}") from None
    record = {"cost": cost, "solution": solution, "source": source}
    write_atomically(entry, json.dumps(record) + "\n")
