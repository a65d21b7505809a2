"""What contenders reach on groups of instances: rollouts that are kept, and gaps that are read off.

Rollouts are those of `spo evaluate` and `spo baseline`. They are kept in OUT/evaluations, one
entry for everything that decides them but the instance (the programs or the function, problem,
steps, seeds, limits, what is shown of the state, what becomes of infeasible candidates); a row of
an entry is one instance, by its digest. So a script that was killed goes on where it was, more
instances cost only themselves, and two columns with an instance in common share it. References are
not part of it: they are joined when a row is read, so better ones change gaps without a new
rollout. A run's pair is evaluated as it was discovered: with the state or without, and so on.

A rollout that failed has a status and a reason, and NaN for its costs. One that failed by our own
fault (host_fault) is not kept, so the next call tries it again.
"""

import hashlib
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common.alns_curve import WithCurve
from common.budgets import Budget, Group
from common.contenders import Contender
from common.discovered import runs_of
from common.kept import ROW, Entry, Row

from spo_jax import __version__
from spo_jax.config import Settings
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.report.baselines import get_baseline, run_baseline
from spo_jax.envs.report.evaluation import Progress, require_lawful
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.envs.run.shown import OBSERVED, Showing, Shown, shown_with
from spo_jax.envs.specs import cache_folder, own_references, parse_specs, with_references
from spo_jax.errors import InputError
from spo_jax.program import Pair

CHUNK = 800  # nodes a worker and chunk of a pair's: what a kill costs, some tens of seconds
LONGER = 4  # chunks of a baseline, whose processes are started anew for each
SLOW = ("alns", "or-tools", "3-opt", "local-search")  # baselines that are worth processes


def _silent(what: str, done: int, total: int) -> None:
    return None


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Rollouts of one pair or baseline on the instances of a group, in the group's order.

    who: the contender's name, with "-seedN" of its discovery run where it has one.
    names, sources: [I] of instances, and where their references come from. sizes: [I] int64.
    best_cost: [I, S, T+1] float64, best-so-far objective before each step and at the end; T+1 = 1
        for a construction. NaN throughout a failed rollout.
    state: [I, S, T] int32, z_t; -1 throughout a failed rollout. T = 0 where there is none.
    seconds: [I, S] float64, CPU seconds. references: [I] float64, NaN where there is none.
    statuses: [I, S] int8, a `Status`. reasons: [I, S] str, empty for OK.
    """

    who: str
    names: tuple[str, ...]
    sources: tuple[str, ...]
    sizes: np.ndarray
    best_cost: np.ndarray
    state: np.ndarray
    seconds: np.ndarray
    references: np.ndarray
    statuses: np.ndarray
    reasons: np.ndarray

    @property
    def curves(self) -> np.ndarray:
        """[I, S, T+1] float64, the reference gap in percent at each step."""
        known = self.references[:, None, None]
        return 100 * (self.best_cost - known) / known

    @property
    def gaps(self) -> np.ndarray:
        """[I, S] float64, the final reference gap in percent."""
        return self.curves[..., -1]

    @property
    def by_instance(self) -> np.ndarray:
        """[I] float64, the mean final gap of an instance's successful rollouts; NaN without any."""
        return mean_of_known(self.gaps)

    @property
    def failed(self) -> int:
        """Rollouts that gave no solution."""
        return int((self.statuses != Status.OK).sum())

    @property
    def failure(self) -> str:
        """The first failure in words, or ""."""
        bad = np.argwhere(self.statuses != Status.OK)
        if not len(bad):
            return ""
        i, s = bad[0]
        label = Status(int(self.statuses[i, s])).label
        return f"{self.names[i]} seed {s}: {label}: {self.reasons[i, s]}"


def mean_of_known(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean of the finite values along an axis, NaN where there are none."""
    known = np.isfinite(values)
    count = known.sum(axis)
    total = np.where(known, values, 0.0).sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


# --- what to call ---------------------------------------------------------------------------------


def load(
    group: Group,
    problem: Problem,
    *,
    effort: str,
    references: bool = True,
    own: str | None = None,
    progress: Progress = _silent,
) -> list[Instance]:
    """The instances of a group, with references as `spo evaluate` finds them.

    effort: of the solvers, where none of that effort ship. references: False leaves those of
    uniform instances out. own: a file of better ones.
    Raises InputError for a group without specs, saying why it has none, and for a bad file.
    """
    from spo_jax.envs.report.references import known

    if not group.specs:
        raise InputError(f"{group.block} {group.label}: {group.missing}")
    better = None if own is None else own_references(own)
    found: list[Instance] = []
    for plan in parse_specs(group.specs, problem, own or ("solve" if references else "none")):
        instances = plan.load(problem)
        if references and plan.uniform is not None:
            told = partial(progress, f"{plan.text}: references")
            folder = cache_folder()
            instances = with_references(problem, instances, folder, told, effort, better)
        elif better is not None:
            instances = [known(problem, each, own=better) or each for each in instances]
        found += instances
    return found


def evaluate(
    contender: Contender,
    problem: Problem,
    group: Group | Sequence[Instance],
    budget: Budget,
    out: Path,
    *,
    workers: int = 1,
    progress: Progress = _silent,
) -> list[Evaluated]:
    """A contender on a group: one `Evaluated` for each discovery run, or the only one.

    group: or its instances, loaded once for several contenders. Discovers first what is not yet
    discovered. Raises InputError and MissingExtra where it cannot be had.
    """
    instances: Sequence[Instance]
    if isinstance(group, Group):
        instances = load(group, problem, effort=budget.effort, progress=progress)
    else:
        instances = group
    shared: dict[str, Any] = {"steps": budget.steps, "seeds": budget.evaluation_seeds}
    shared |= {"out": out, "workers": workers, "progress": progress}
    if contender.baseline is not None:
        seconds = budget.solver_seconds
        return [evaluate_baseline(contender.baseline, problem, instances, **shared,
                                  solver_seconds=seconds)]  # fmt: skip
    return [
        evaluate_pair(
            pair, problem, instances, **shared, who=who, shown=shown_with(settings.generator.state),
            on_invalid=settings.evaluation.on_invalid, patience=budget.patience,
        )
        for who, pair, settings in pairs_of(contender, problem.name, budget, out, workers)
    ]  # fmt: skip


def pairs_of(
    contender: Contender, problem: str, budget: Budget, out: Path, workers: int
) -> list[tuple[str, Pair, Settings]]:
    """(name, pair, what it was discovered with) of a contender's discovery runs, or of its file;
    none for a baseline.
    """
    if contender.pair is not None:
        return [(contender.name, *read_pair(contender.pair, problem))]
    if not contender.discovered:
        return []
    runs = runs_of(contender, problem, budget, out, workers)
    return [
        (f"{contender.name}-seed{seed}", run.best.pair, run.config)
        for seed, run in enumerate(runs)
        if run.best is not None
    ]


def read_pair(path: str | Path, problem: str) -> tuple[Pair, Settings]:
    """What `spo evaluate` would take: a pair file, a run folder, or operators of G-LNS; and what
    it was discovered with.
    """
    from spo_jax.search.runs.pairs import resolve

    return resolve(path, problem)[1:]


def evaluate_pair(
    pair: Pair,
    problem: Problem,
    instances: Sequence[Instance],
    *,
    steps: int,
    seeds: int,
    out: Path,
    workers: int = 1,
    who: str = "pair",
    shown: Showing = OBSERVED,
    on_invalid: str = "fail",
    patience: float = 10.0,
    progress: Progress = _silent,
) -> Evaluated:
    """Rollouts of a pair from seeds 0, ..., seeds - 1, kept under `out`.

    shown, on_invalid: as `LocalEvaluator` has them. patience: CPU limit over the problem's own,
    more above 500 nodes. Raises InputError for a program that the gate refuses.
    """
    key: dict[str, Any] = {
        "pair": pair.digest,
        "steps": steps,
        "seeds": seeds,
        "patience": patience,
        "shown": _shown_key(shown),
    }
    if on_invalid != "fail":  # which entries say by leaving it out
        key["on_invalid"] = on_invalid

    def run(some: Sequence[Instance], told: Callable[[int, int], None]) -> Rollouts:
        limit = patience * problem.cpu_seconds * _larger(some)
        with LocalEvaluator(
            problem, workers, cpu_seconds=limit, shown=shown, on_invalid=on_invalid
        ) as evaluator:
            require_lawful(evaluator, problem, pair)
            return evaluator.run(
                [pair], some, seeds=range(seeds), steps=steps, fail_fast=False, progress=told
            )

    chunk = CHUNK * workers
    return _kept(who, key, problem, instances, steps, seeds, out, chunk, run, progress)


def evaluate_baseline(
    name: str,
    problem: Problem,
    instances: Sequence[Instance],
    *,
    steps: int,
    seeds: int,
    out: Path,
    workers: int = 1,
    solver_seconds: float | None = None,
    progress: Progress = _silent,
) -> Evaluated:
    """A baseline of `spo baseline`; ALNS with its curve, everything else with its end alone.

    What draws nothing at random has one seed. solver_seconds: of or-tools, by default the paper's
    limits. Raises InputError for a name that is none, MissingExtra where it is not installed.
    """
    baseline = get_baseline(name, problem)
    count = seeds if baseline.seeded else 1
    key: dict[str, Any] = {"baseline": baseline.function, "seeds": count}
    processes = workers if name in SLOW else 1
    curved = name == "alns"
    if curved:
        key["steps"] = steps
    solve: Any = baseline.solve
    if name == "or-tools" and solver_seconds is not None:
        key["seconds"] = solver_seconds
        solve = partial(solve, seconds=solver_seconds)

    def run(some: Sequence[Instance], told: Callable[[int, int], None]) -> Rollouts:
        if not curved:
            return run_baseline(solve, problem, some, told, seeds=range(count), workers=processes)
        with tempfile.TemporaryDirectory() as folder:
            method = WithCurve(baseline.function, steps, folder)
            ran = run_baseline(method, problem, some, told, seeds=range(count), workers=processes)
            return method.completed(ran, some)

    points = steps if curved else 0
    chunk = CHUNK * workers * LONGER
    return _kept(name, key, problem, instances, points, count, out, chunk, run, progress)


# --- the store ------------------------------------------------------------------------------------

_Run = Callable[[Sequence[Instance], Callable[[int, int], None]], Rollouts]


def _kept(
    who: str,
    key: Mapping[str, Any],
    problem: Problem,
    instances: Sequence[Instance],
    steps: int,
    seeds: int,
    out: Path,
    chunk: int,
    run: _Run,
    progress: Progress,
) -> Evaluated:
    """The rows of `instances`, run where they are not kept, about `chunk` nodes at a time."""
    if not instances or seeds < 1:
        raise InputError(f"{who}: an evaluation needs at least one instance and one seed")
    entry = Entry(
        out / "evaluations", {"spo_jax": __version__, "problem": problem.name, **key}, steps, seeds
    )
    with entry.held():
        rows = entry.read()
        missing = list({i.digest: i for i in instances if i.digest not in rows}.values())
        total, done = len(missing) * seeds, 0

        def told(first: int, ran: int, of: int) -> None:
            progress(f"{who} on {problem.name}: rollouts", first + ran, total)

        for some in _chunks(missing, chunk):
            found = run(some, partial(told, done))
            done += len(some) * seeds
            for i, instance in enumerate(some):
                rows[instance.digest] = _row(found, i, steps)
            entry.write(rows)
    return _evaluated(who, instances, [rows[instance.digest] for instance in instances])


def _row(found: Rollouts, i: int, steps: int) -> Row:
    return Row(
        found.best_cost[0, i, :, -1 - steps :],
        found.state[0, i, :, :steps],
        found.seconds[0, i],
        found.status[0, i],
        found.reason[0, i].astype(str),
    )


def _evaluated(who: str, instances: Sequence[Instance], rows: Sequence[Row]) -> Evaluated:
    known = [math.nan if i.reference is None else i.reference for i in instances]
    stacked = {name: np.stack([getattr(row, name) for row in rows]) for name in ROW}
    return Evaluated(
        who,
        names=tuple(instance.name for instance in instances),
        sources=tuple(instance.reference_source for instance in instances),
        sizes=np.array([instance.size for instance in instances]),
        references=np.array(known, dtype=float),
        **stacked,
    )


def _chunks(instances: Sequence[Instance], nodes: int) -> Iterator[list[Instance]]:
    """Runs of instances of about so many nodes, each with one limit of its own."""
    chunk: list[Instance] = []
    for instance in instances:
        full = chunk and sum(each.size for each in chunk) + instance.size > nodes
        if full or (chunk and _larger(chunk) != _larger([instance])):
            yield chunk
            chunk = []
        chunk.append(instance)
    if chunk:
        yield chunk


def _larger(instances: Sequence[Instance]) -> float:
    """What a limit is multiplied by: a step costs at least the square of the size."""
    return max(1.0, (max(each.size for each in instances) / 500) ** 2)


def _shown_key(shown: Showing) -> Any:
    if isinstance(shown, Shown):
        return repr(shown)
    told = repr(sorted((key, repr(value)) for key, value in shown.items()))
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
