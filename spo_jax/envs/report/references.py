"""Reference costs of instances, from files or from the problem's solver.

A solver's cost is recomputed as the float64 cost of its solution in the instance's own numbers.
"""

import hashlib
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import Any

from spo_jax import __version__
from spo_jax.envs.files.textfiles import cost_text, load_json, write_atomically
from spo_jax.envs.problem import Infeasible, Instance, Problem
from spo_jax.envs.report.reference_files import ReferenceFile, Row, least, shipped
from spo_jax.errors import InputError, MissingExtra

EFFORTS = ("quick", "standard", "paper")  # of a solver's search; each solver defines them


def reference(
    problem: Problem,
    instance: Instance,
    effort: str = "standard",
    cache: str | Path | None = None,
    own: ReferenceFile | None = None,
) -> Instance:
    """`instance` with a reference cost, where it comes from and whether it is proven optimal.

    The first of these that has one: `own`, the user's file; the instance's file; the package's
    values; `cache`; a solver. A package value counts if it is certified or was computed with at
    least `effort` (one of EFFORTS); otherwise only if the cache and the solver give none or a
    higher one. Without a reference solver the reference stays None and reference_source says so.
    cache: as for `solved`.

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

    A row of `own` that is worse than another known reference is ignored; reference_source says so.

    Raises InputError for an unknown effort, and for a row of `own` that belongs to another
    instance, such as a cost below a proven optimum.
    """
    require_effort(effort)
    row = shipped(problem).by_digest(instance) if instance.reference is None else None
    mine = None if own is None else own.find(problem, instance)
    if mine is None:
        if row is None:
            return None if instance.reference is None else instance
        enough = row.certified or _rank(row.effort) >= _rank(effort)
        return _shipped(instance, row) if enough else None
    if row is not None and row.certified and worse(problem, row.cost, mine.cost):
        side = "above" if problem.maximise else "below"
        raise InputError(
            f"{mine.where}: {cost_text(mine.cost)} is {side} {cost_text(row.cost)}, which is "
            f"proven to be the optimum of {instance.name}: it is of another instance or rounded"
        )
    best = instance if row is None else _shipped(instance, row)
    if best.reference is None or (
        problem.turned(mine.cost) < problem.turned(best.reference) and not best.certified
    ):
        source = f"{mine.source} ({mine.where})" if mine.source else mine.where
        return _with(instance, mine.cost, source, mine.certified)
    if worse(problem, mine.cost, best.reference):
        source_note = f"{best.reference_source} ({mine.where} says {cost_text(mine.cost)})"
        return replace(best, reference_source=source_note)
    return best


def require_effort(effort: str) -> None:
    """Raises InputError unless `effort` is one of EFFORTS."""
    if effort not in EFFORTS:
        raise InputError(f"unknown effort {effort!r}: use {', '.join(EFFORTS)}")


def worse(problem: Problem, cost: float, than: float) -> bool:
    """Whether a reference is worse than another by more than rounding."""
    return bool(problem.turned(cost) > problem.turned(than) + 1e-6 * abs(than))


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

    cache: a folder with one JSON file per instance, effort and source of the problem's own modules,
    created on demand. An entry counts only if this version wrote it and its solution is feasible;
    its cost is recomputed.

    Raises InputError without a solver and for a solution that is none, MissingExtra if the solver
    is not installed.
    """
    require_effort(effort)
    name = f"{instance.digest}-{effort}{_of_code(problem)}.json"
    entry = None if cache is None else Path(cache) / name
    found = None if entry is None else _load(entry, problem, instance)
    if found is None:
        code, found = _checked(problem, instance, problem.solve_reference(instance, effort))
        if entry is not None:
            _store(entry, code, found)
    return found


def _checked(problem: Problem, instance: Instance, answer: Any) -> tuple[list[int], Instance]:
    """The code of a solver's solution, and its instance with the cost of what that decodes to."""
    what = f"the reference solver of {problem.name}"
    if type(answer) is not tuple or [*map(type, answer[1:])] != [str, bool]:
        raise InputError(f"{what} returned no (solution, source, whether it is optimal)")
    solution, source, certified = answer
    try:
        code = [index(number) for number in problem.rules(instance).encode(solution)]
        cost = float(problem.cost(instance, problem.decode(instance, code)))
    except (Infeasible, TypeError, ValueError, LookupError, AttributeError) as error:
        raise InputError(f"{what}: its solution of {instance.name} is none ({error})") from error
    if not least(problem, instance) <= problem.turned(cost) < math.inf:
        raise InputError(
            f"{what}: its solution of {instance.name} costs {cost:.9g}, which is not finite or "
            f"{'above' if problem.maximise else 'below'} the problem's lower_bound"
        )
    return code, _with(instance, cost, source, certified)


def _of_code(problem: Problem) -> str:
    """What tells the versions of a problem's own modules apart; empty for a problem of ours."""
    modules = {kind.__module__ for kind in type(problem).__mro__[:-1]}
    files = [
        getattr(sys.modules[name], "__file__", None)
        for name in sorted(modules)
        if not _is_ours(name)
    ]
    if not files:
        return ""
    texts = [Path(file).read_bytes() if file else b"" for file in files]
    return (
        "-"
        + hashlib.blake2b(
            b"\0".join([type(problem).__qualname__.encode(), *texts]), digest_size=8
        ).hexdigest()
    )


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "spo_jax"


def _load(entry: Path, problem: Problem, instance: Instance) -> Instance | None:
    """The reference of a cache entry, or None if it is missing or invalid."""
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
    provenance = {"source": found.reference_source, "certified": found.certified}
    record = {"code": list(code), **provenance, "version": __version__}
    write_atomically(entry, json.dumps(record) + "\n")
