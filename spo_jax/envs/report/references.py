"""Reference costs of instances: known ones, and those that the problem's solver finds.

The cost that counts is ours: the float64 cost of the solution in the instance's own numbers.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spo_jax import __version__
from spo_jax.envs.problem import Infeasible, Instance, Problem
from spo_jax.envs.report.reference_files import ReferenceFile, Row, shipped
from spo_jax.envs.textfiles import cost_text, load_json, write_atomically
from spo_jax.errors import InputError, MissingExtra

EFFORTS = ("quick", "standard", "paper")  # how long solvers may search; each says what that is


def reference(
    problem: Problem,
    instance: Instance,
    effort: str = "standard",
    cache: str | Path | None = None,
    own: ReferenceFile | None = None,
) -> Instance:
    """`instance` with a reference cost, where it comes from and whether it is proven optimal.

    Looked up in this order, until there is one: `own`, the user's file; what the instance's own
    file brought; the values that ship; `cache`; a solver. What ships counts if it is certified or
    was made with `effort` (one of EFFORTS) or more, else if it is lower than what the next two
    have, or they have nothing. For a problem without a reference solver the reference stays None
    and reference_source says so. cache: as for `solved`.

    Raises InputError for an unknown effort and as `known` does, MissingExtra if the solver is not
    installed.
    """
    found = known(problem, instance, effort, own)
    if found is not None:
        return found
    row = shipped(problem).by_digest(instance)  # made with less effort, but perhaps with more luck
    if row is None and not problem.offers("solve_reference"):
        return replace(instance, reference_source=f"no reference solver for {problem.name}")
    try:
        mine = solved(problem, instance, effort, cache)
    except MissingExtra:
        if row is None:
            raise
        return _shipped(instance, row)
    if row is not None and mine.reference is not None and row.cost < mine.reference:
        return _shipped(instance, row)
    return mine


def known(
    problem: Problem,
    instance: Instance,
    effort: str = "standard",
    own: ReferenceFile | None = None,
) -> Instance | None:
    """`instance` with the best reference that needs neither solver nor cache, or None.

    A row of `own` that is worse than what else is known is not taken; reference_source says so.

    Raises InputError for an unknown effort, and for a row of `own` that is of another instance,
    which a cost below a proven optimum shows, too.
    """
    require_effort(effort)
    row = shipped(problem).by_digest(instance) if instance.reference is None else None
    mine = None if own is None else own.find(problem, instance)
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


def require_effort(effort: str) -> None:
    """Raises InputError unless `effort` is one of EFFORTS."""
    if effort not in EFFORTS:
        raise InputError(f"unknown effort {effort!r}: use {', '.join(EFFORTS)}")


def worse(cost: float, than: float) -> bool:
    """Whether a reference is higher by more than the rounding of whoever wrote it down."""
    return cost > than * (1 + 1e-6)


def _rank(effort: str) -> int:
    return EFFORTS.index(effort) if effort in EFFORTS else -1


def _with(instance: Instance, cost: float, source: str, certified: bool) -> Instance:
    return replace(instance, reference=cost, reference_source=source, certified=certified)


def _shipped(instance: Instance, row: Row) -> Instance:
    return _with(instance, row.cost, f"{row.source} (shipped)", row.certified)


# --- solving --------------------------------------------------------------------------------------


def solved(
    problem: Problem,
    instance: Instance,
    effort: str = "standard",
    cache: str | Path | None = None,
) -> Instance:
    """`instance` with the reference that the problem's solver finds with one of EFFORTS.

    `cache`, if given, is a folder of one JSON file per instance and effort, made on demand; an
    entry counts only if this version made it and its solution is feasible, and its cost is computed
    anew.

    Raises InputError where there is no solver, MissingExtra if it is not installed.
    """
    require_effort(effort)
    entry = None if cache is None else Path(cache) / f"{instance.digest}-{effort}.json"
    found = None if entry is None else _load(entry, problem, instance)
    if found is None:
        solution, source, certified = problem.solve_reference(instance, effort)
        found = _with(instance, problem.cost(instance, solution), source, certified)
        if entry is not None:
            _store(entry, problem.rules(instance).encode(solution), found)
    return found


def _load(entry: Path, problem: Problem, instance: Instance) -> Instance | None:
    """What a cache entry says, or None if there is none that holds."""
    try:
        record = load_json(entry)
        code, source = record["code"], str(record["source"])
        if record["version"] != __version__ or any(type(number) is not int for number in code):
            return None
        cost = problem.cost(instance, problem.decode(instance, code))
        return _with(instance, cost, source, record["certified"] is True)
    except (InputError, Infeasible, KeyError, TypeError, ValueError, IndexError):
        return None  # absent, damaged, or another instance's


def _store(entry: Path, code: Sequence[int], found: Instance) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {entry.parent}: {error.strerror}") from None
    said = {"source": found.reference_source, "certified": found.certified}
    record = {"code": list(code), **said, "version": __version__}
    write_atomically(entry, json.dumps(record) + "\n")
