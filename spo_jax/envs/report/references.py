"""Reference costs for instances that come without one: LKH for the TSP, PyVRP for the CVRP.

Appendix B uses Concorde and one timed PyVRP run. Concorde is not on PyPI: LKH's tours of small
instances are proven optimal, or improved, by our own branch and cut (`exact`). A run of PyVRP is
limited here by iterations instead of seconds, because only that is repeatable, and the best of
several seeds is kept.

Both solvers work on integers, so float distances are scaled and rounded for the search. The cost
that is returned is ours: the float64 length of the solution in the instance's own matrix.
"""

import json
import warnings
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.problems.cvrp.files import check_routes, routes_cost
from spo_jax.envs.problems.tsp.files import check_tour, cost_text, tour_cost
from spo_jax.envs.report.reference_files import ReferenceFile, Row, shipped
from spo_jax.envs.textfiles import load_json, write_atomically
from spo_jax.errors import InputError, MissingExtra
from spo_jax.seeding import derive, numpy_rng
from spo_jax.stopping import at_once


@dataclass(frozen=True)
class Effort:
    """How long the solvers may search."""

    lkh_runs: int
    pyvrp_iterations: int  # per customer and seed
    pyvrp_seeds: int
    exact_size: int  # the largest TSP whose tour is proven shortest


# On one core of 2020s make, PyVRP does about 2,000 iterations a second, so that each seed of
# "paper" costs about what Appendix B.2 grants: 10 seconds at n = 50 to 60 at n = 200.
EFFORTS = {
    "quick": Effort(1, 20, 1, 50),
    "standard": Effort(3, 100, 3, 100),
    "paper": Effort(10, 500, 3, 200),
}

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
    with at_once():
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
    instance: Instance,
    effort: str = "standard",
    cache: str | Path | None = None,
    own: ReferenceFile | None = None,
) -> Instance:
    """`instance` with a reference cost, where it comes from and whether it is proven optimal.

    Looked up in this order, until there is one: `own`, the user's file; what the instance's own
    file brought; the values that ship; `cache`; a solver. What ships counts if it is certified or
    was made with `effort` (a key of EFFORTS) or more, else if it is lower than what the next two
    have, or they have nothing. For a problem without a reference solver the reference stays None
    and reference_source says so. cache: as for `solved`.

    Raises InputError for an unknown effort and as `known` does, MissingExtra if the solver is not
    installed.
    """
    found = known(instance, effort, own)
    if found is not None:
        return found
    if instance.problem not in ("tsp", "cvrp"):
        return replace(instance, reference_source=f"no reference solver for {instance.problem}")
    row = shipped().by_digest(instance)  # made with less effort, but perhaps with more luck
    try:
        mine = solved(instance, effort, cache)
    except MissingExtra:
        if row is None:
            raise
        return _shipped(instance, row)
    if row is not None and row.cost < mine.cost:
        return _shipped(instance, row)
    return mine.of(instance)


def known(
    instance: Instance, effort: str = "standard", own: ReferenceFile | None = None
) -> Instance | None:
    """`instance` with the best reference that needs neither solver nor cache, or None.

    A row of `own` that is worse than what else is known is not taken; reference_source says so.

    Raises InputError for an unknown effort, and for a row of `own` that is of another instance,
    which a cost below a proven optimum shows, too.
    """
    if effort not in EFFORTS:
        raise InputError(f"unknown effort {effort!r}: use {', '.join(EFFORTS)}")
    row = shipped().by_digest(instance) if instance.reference is None else None
    mine = None if own is None else own.find(instance)
    if mine is None:
        if row is None:
            return None if instance.reference is None else instance
        enough = row.certified or _rank(row.effort) >= _rank(effort)
        return _shipped(instance, row) if enough else None
    if row is not None and row.certified and mine.cost < row.cost * (1 - 1e-6):
        raise InputError(
            f"{mine.where}: {cost_text(mine.cost)} is below {cost_text(row.cost)}, which is proven "
            f"to be the optimum of {instance.name}: it is of another instance or rounded"
        )
    best = instance if row is None else _shipped(instance, row)
    if best.reference is None or (mine.cost < best.reference and not best.certified):
        source = f"{mine.source} ({mine.where})" if mine.source else mine.where
        return _with(instance, mine.cost, source, mine.certified)
    if worse(mine.cost, best.reference):
        said = f"{best.reference_source} ({mine.where} says {cost_text(mine.cost)})"
        return replace(best, reference_source=said)
    return best


def worse(cost: float, than: float) -> bool:
    """Whether a reference is higher by more than the rounding of whoever wrote it down."""
    return cost > than * (1 + 1e-6)


def _rank(effort: str) -> int:
    return [*EFFORTS].index(effort) if effort in EFFORTS else -1


def _with(instance: Instance, cost: float, source: str, certified: bool) -> Instance:
    return replace(instance, reference=cost, reference_source=source, certified=certified)


def _shipped(instance: Instance, row: Row) -> Instance:
    return _with(instance, row.cost, f"{row.source} (shipped)", row.certified)


# --- solving --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solved:
    """What a solver found: the solution, its float64 cost, and who found it how."""

    solution: Solution
    cost: float
    source: str
    certified: bool = False

    def of(self, instance: Instance) -> Instance:
        return _with(instance, self.cost, self.source, self.certified)


def solved(instance: Instance, effort: str = "standard", cache: str | Path | None = None) -> Solved:
    """What the solver of the instance's problem, tsp or cvrp, finds with a key of EFFORTS.

    `cache`, if given, is a folder of one JSON file an instance and effort, made on demand; an entry
    counts only if its solution is feasible, and its cost is computed anew.

    Raises MissingExtra if the solver is not installed.
    """
    entry = None if cache is None else Path(cache) / f"{instance.digest}-{effort}.json"
    found = None if entry is None else _load(entry, instance, effort)
    if found is None:
        found = _solve(instance, EFFORTS[effort])
        if entry is not None:
            _store(entry, found, effort)
    return found


def _solve(instance: Instance, effort: Effort) -> Solved:
    if instance.problem == "tsp":
        return _solve_tsp(instance, effort)
    iterations = effort.pyvrp_iterations * instance.size
    runs = [pyvrp(instance, seed, iterations) for seed in range(effort.pyvrp_seeds)]
    routes, cost = min(runs, key=lambda run: run[1])
    each = f"best of {len(runs)} seeds, {iterations} iterations each"
    said = each if len(runs) > 1 else f"{iterations} iterations"
    return Solved(routes, cost, f"PyVRP {version('pyvrp')}, {said}")


def _solve_tsp(instance: Instance, effort: Effort) -> Solved:
    tour, cost = lkh(instance, runs=effort.lkh_runs)
    source = f"LKH (elkai {version('elkai')}), runs={effort.lkh_runs}"
    if instance.size > effort.exact_size:
        return Solved(tour, cost, source)
    from spo_jax.envs.problems.tsp.branch_and_cut import prove

    proof = prove(instance, tour)
    if proof.cost < cost:
        source += ", improved"
    if proof.proven:
        source += f", proven by branch and cut (scipy {version('scipy')})"
    else:
        source += f", not proven by branch and cut in {proof.nodes} nodes"
    return Solved(proof.tour, proof.cost, source, proof.proven)


def _load(entry: Path, instance: Instance, effort: str) -> Solved | None:
    """A cache entry, or None if there is none that holds and was made with such an effort."""
    try:
        record = load_json(entry)
        if record["effort"] != asdict(EFFORTS[effort]):
            return None
        solution, source = record["solution"], str(record["source"])
        if instance.problem == "tsp":
            check_tour(instance, solution)
            cost = tour_cost(instance.dist, solution)
        else:
            check_routes(instance, solution)
            cost = routes_cost(instance.dist, solution)
        return Solved(solution, cost, source, record["certified"] is True)
    except (InputError, KeyError, TypeError, IndexError):  # absent, damaged, or another instance's
        return None


def _store(entry: Path, found: Solved, effort: str) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {entry.parent}: {error.strerror}") from None
    record = asdict(found) | {"effort": asdict(EFFORTS[effort])}
    write_atomically(entry, json.dumps(record) + "\n")
