"""Rollouts of contenders on instances, cached, and the gaps that are computed from them.

Rollouts are those of `spo evaluate` and `spo baseline`. They are cached in OUT/evaluations, one
folder for everything that determines them but the instance, one file per instance. So a script
that was killed resumes, and two columns share an instance. References are not cached: they are
joined when a file is read. A failed rollout has a status and a reason, and NaN for its costs; one
that failed through the evaluator itself (host_fault) is not cached, so the next call repeats it.
"""

import hashlib
import importlib
import io
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from common.cli import Context
from common.contenders import Contender
from common.runs import runs_of
from spo_jax import __version__
from spo_jax.cache import cache_folder
from spo_jax.config import Settings
from spo_jax.envs.files.labels import with_unique_names
from spo_jax.envs.files.specs import own_references, parse_specs, with_references
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.envs.glns_operators import load_each
from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.problems.alns import Settings as AlnsSettings
from spo_jax.envs.report.baselines import get_baseline, run_baseline
from spo_jax.envs.report.references import known
from spo_jax.envs.report.reporting import Meter
from spo_jax.envs.run.evaluator import require_lawful
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import Showing, Shown, shown_with
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Pair
from spo_jax.runs.pairs import resolve

CHUNK = 800  # nodes per worker between two writes of the cache: some tens of seconds
SLOW = (
    "alns",
    "alns-example",
    "or-tools",
    "3-opt",
    "local-search",
)  # baselines that are worth processes
_ROW = ("best_cost", "state", "seconds", "statuses", "reasons", "shown")
_Run = Callable[[Sequence[Instance]], Rollouts]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Rollouts of one pair or baseline on instances.

    who: the contender's name, with "-seedN" of its discovery run where it has one.
    best_cost: [I, S, T+1] float64, best-so-far objective before each step and at the end; T+1 = 1
        for a construction. NaN throughout a failed rollout.
    state: [I, S, T] int32, z_t; -1 throughout a failed rollout. T = 0 where there is none.
    seconds: [I, S] float64, CPU seconds. references: [I] float64, NaN where there is none.
    statuses: [I, S] int8, a `Status`. reasons: [I, S] str, empty for OK. shown: [I, S, T, K]
        float64, as `Rollouts.shown`; K = 0 for z_t.
    """

    who: str
    instances: Sequence[Instance]
    best_cost: np.ndarray
    state: np.ndarray
    seconds: np.ndarray
    statuses: np.ndarray
    reasons: np.ndarray
    shown: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0, 0)))

    @property
    def references(self) -> np.ndarray:
        return np.array([math.nan if i.reference is None else i.reference for i in self.instances])

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
        return int((self.statuses != Status.OK).sum())

    @property
    def failure(self) -> str:
        """The first failure in words, or ""."""
        for i, s in np.argwhere(self.statuses != Status.OK)[:1]:
            label = Status(int(self.statuses[i, s])).label
            return f"{self.instances[i].name} seed {s}: {label}: {self.reasons[i, s]}"
        return ""


def mean_of_known(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean of the finite values along an axis, NaN where there are none."""
    finite = np.isfinite(values)
    count, total = finite.sum(axis), np.where(finite, values, 0.0).sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


def milestones(steps: int, points: int = 40) -> np.ndarray:
    """[K] int64: about so many steps from 1 to `steps`, spaced by ratio; [0] without steps."""
    if not steps:
        return np.zeros(1, int)
    return np.unique(np.rint(np.geomspace(1, steps, points)).astype(int))


# --- instances ------------------------------------------------------------------------------------


def load(context: Context, specs: Sequence[str]) -> list[Instance]:
    """The instances of --on specs with references. Raises InputError for a bad file."""
    found: list[Instance] = []
    for plan in parse_specs(specs, context.problem, context.references or "solve"):
        instances = plan.load(context.problem)
        if plan.uniform is not None:
            instances = referenced(context, instances)
        elif context.references is not None:
            better = own_references(context.references)
            instances = [known(context.problem, i, own=better) or i for i in instances]
        found += instances
    return with_unique_names(found)


def load_group(context: Context, key: str) -> list[Instance]:
    """The instances of a column. Raises InputError for none, or one without a reference."""
    group = context.group(key)
    if not group.specs:
        raise InputError(f"{group.heading}: {group.missing}")
    return require_references(load(context, group.specs))


def referenced(context: Context, instances: list[Instance]) -> list[Instance]:
    """The instances with references as `spo evaluate` computes them."""
    better = None if context.references is None else own_references(context.references)
    with Meter(sys.stderr, sys.stdout) as meter:
        return with_references(
            context.problem, instances, cache_folder(), partial(meter, "references"),
            context.budget.effort, better,
        )  # fmt: skip


def require_references(instances: list[Instance]) -> list[Instance]:
    """The instances. Raises InputError for one without a reference cost, which has no gap."""
    for each in instances:
        if each.reference is None:
            raise InputError(f"{each.name} has no reference cost: {each.reference_source}")
    return instances


# --- rollouts -------------------------------------------------------------------------------------


def evaluate(
    contender: Contender,
    context: Context,
    instances: Sequence[Instance],
) -> list[Evaluated]:
    """A contender on instances: one result per discovery run, or the only one.

    Discovers first what is not discovered yet. A run's pair is evaluated as it was discovered: with
    the state or without, failing or skipping infeasible candidates.
    """
    if contender.baseline is not None:
        return [evaluate_baseline(contender.baseline, context, instances)]
    if contender.operators is not None:
        return [evaluate_operators(contender, context, instances)]
    return [
        evaluate_pair(pair, config, context, instances, who=who)
        for who, pair, config in pairs_of(contender, context)
    ]


def pairs_of(contender: Contender, context: Context) -> list[tuple[str, Pair, Settings]]:
    """(name, pair, settings of its discovery) of a contender's runs, or of its file."""
    if contender.pair is not None:
        return [(contender.name, *resolve(contender.pair, context.problem)[1:])]
    return [
        (f"{contender.name}-seed{run.config.seed}", run.best.pair, run.config)
        for run in runs_of(contender, context)
        if run.best is not None
    ]


def evaluate_pair(
    pair: Pair,
    config: Settings,
    context: Context,
    instances: Sequence[Instance],
    *,
    who: str = "pair",
    steps: int | None = None,
    shown: Showing | None = None,
) -> Evaluated:
    """Rollouts of a pair from seeds 0, 1, ...

    config: of its discovery. steps: by default the budget's. shown: in place of the state.
    Raises InputError for a program that the gate refuses.
    """
    budget, problem, on_invalid = context.budget, context.problem, config.evaluation.on_invalid
    steps, seeds = steps or budget.steps, budget.evaluation_seeds
    shown = shown_with(config.generator.state) if shown is None else shown
    key = {
        "pair": pair.digest, "steps": steps, "seeds": seeds, "patience": budget.patience,
        "shown": _shown_key(shown), "on_invalid": on_invalid,
        **{name: value for name, value in config.terms.items() if name != "state"},
    }  # fmt: skip

    def run(some: Sequence[Instance]) -> Rollouts:
        limit = budget.patience * problem.cpu_seconds * _larger(some)
        with LocalEvaluator(
            problem,
            context.workers,
            cpu_seconds=limit,
            shown=shown,
            on_invalid=on_invalid,
            acceptance=config.evaluation.acceptance,
            start=config.evaluation.start,
        ) as evaluator:
            require_lawful(evaluator, problem, pair)
            return evaluator.run([pair], some, range(seeds), steps, fail_fast=False)

    return _cached(who, key, context, instances, steps, run)


def evaluate_operators(
    contender: Contender, context: Context, instances: Sequence[Instance]
) -> Evaluated:
    """Operators of G-LNS in a search that draws them, a search for each instance and seed.

    A step that fails is lost. Raises InputError for a file that cannot be used.
    """
    assert contender.operators is not None
    budget, problem, rules = context.budget, context.problem, contender.adaptation
    steps, seeds = budget.steps, budget.evaluation_seeds
    programs = load_each(contender.operators, problem)
    key = {
        "operators": {role: [p.digest for p in programs[role]] for role in ROLES},
        "steps": steps, "seeds": seeds, "patience": budget.patience, "rules": asdict(rules),
    }  # fmt: skip

    def run(some: Sequence[Instance]) -> Rollouts:
        limit = budget.patience * problem.cpu_seconds * _larger(some)
        with LocalEvaluator(problem, context.workers, cpu_seconds=limit) as evaluator:
            every = [program for role in ROLES for program in programs[role]]
            for program, refusal in zip(every, evaluator.check(every), strict=True):
                if refusal is not None:
                    what = f"{program.strategy} {refusal.reason}"
                    raise InputError(f"{contender.operators}: {what}")
            found = evaluator.adaptive(
                programs["destroy"], programs["repair"], some, range(seeds), steps, rules,
                carry=False,
            )  # fmt: skip
        return found.rollouts

    return _cached(contender.name, key, context, instances, steps, run)


def evaluate_baseline(name: str, context: Context, instances: Sequence[Instance]) -> Evaluated:
    """A baseline of `spo baseline`; ALNS with its curve, all others with their end alone.

    A deterministic one has one seed. Raises MissingExtra where it is not installed.
    """
    budget, baseline = context.budget, get_baseline(name, context.problem)
    count = budget.evaluation_seeds if baseline.seeded else 1
    solve, points, seconds = baseline.solve, 0, None
    if name == "or-tools" and budget.solver_seconds is not None:
        seconds = budget.solver_seconds
        solve = partial(solve, seconds=seconds)
    if name == "alns":
        points = budget.steps
    key = {"baseline": baseline.function, "seeds": count, "steps": points, "seconds": seconds}

    def run(some: Sequence[Instance]) -> Rollouts:
        with tempfile.TemporaryDirectory() as folder:
            curve = AlnsCurve(baseline.function, points, folder)
            found = run_baseline(
                curve if points else solve, context.problem, some,
                seeds=range(count), workers=context.workers if name in SLOW else 1,
            )  # fmt: skip
            return curve.completed(found, some) if points else found

    return _cached(name, key, context, instances, points, run)


@dataclass(frozen=True)
class AlnsCurve:
    """ALNS as a baseline that leaves its best cost at every iteration in `folder`.

    A baseline returns its solution alone, perhaps from another process; so the curve is a file.
    function: "module:alns", whose module also has `alns_search`.
    """

    function: str
    steps: int
    folder: str

    def __call__(self, instance: Instance, seed: int) -> Solution:
        module = importlib.import_module(self.function.partition(":")[0])
        found = module.alns_search(instance, seed, AlnsSettings(iterations=self.steps))
        np.save(self._path(instance, seed), found.best_cost)
        return found.solution.tolist() if isinstance(found.solution, np.ndarray) else found.solution

    def completed(self, rollouts: Rollouts, instances: Sequence[Instance]) -> Rollouts:
        """The rollouts [1, I, S] with best_cost [1, I, S, T+1]; the last costs stay as checked."""
        shape = rollouts.status.shape
        curves = np.full((*shape, self.steps + 1), math.nan)
        for _, i, s in np.argwhere(rollouts.status == Status.OK):
            curves[0, i, s] = np.load(self._path(instances[i], s))
            curves[0, i, s, -1] = rollouts.best_cost[0, i, s, -1]
        state = np.full((*shape, self.steps), -1, np.int32)
        return replace(rollouts, best_cost=curves, state=state)

    def _path(self, instance: Instance, seed: int) -> Path:
        return Path(self.folder) / f"{instance.digest}-{seed}.npy"


# --- the cache ------------------------------------------------------------------------------------


def _cached(
    who: str,
    key: Mapping[str, Any],
    context: Context,
    instances: Sequence[Instance],
    steps: int,
    run: _Run,
) -> Evaluated:
    """The rows of `instances`; those that have no file are run, about CHUNK nodes at a time."""
    text = json.dumps({"spo_jax": __version__, "problem": context.problem.name, **key}, indent=1)
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    folder = context.out / "evaluations" / digest
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "key.json", text)
    files = {each.digest: folder / f"{each.digest}.npz" for each in instances}
    missing = {i.digest: i for i in instances if not files[i.digest].exists()}
    rows: dict[str, Mapping[str, np.ndarray]] = {}
    for some in _chunks(list(missing.values()), CHUNK * context.workers):
        print(f"{who}: {len(rows)} of {len(missing)} instances", flush=True)
        found = run(some)
        for i, instance in enumerate(some):
            row: dict[str, Any] = {
                "best_cost": found.best_cost[0, i, :, -1 - steps :],
                "state": found.state[0, i, :, :steps],
                "seconds": found.seconds[0, i],
                "statuses": found.status[0, i],
                "reasons": found.reason[0, i].astype(str),
            }
            if found.shown is not None and found.shown.shape[-1]:
                row["shown"] = found.shown[0, i]
            rows[instance.digest] = row
            if not (row["statuses"] == Status.HOST_FAULT).any():
                buffer = io.BytesIO()
                np.savez_compressed(buffer, **row)
                write_atomically(files[instance.digest], buffer.getvalue())
    for each, path in files.items():
        if each not in rows:
            with np.load(path) as file:
                rows[each] = dict(file)
    for digest, kept in rows.items():  # that of z_t is not kept
        rows[digest] = {"shown": np.empty((*kept["state"].shape, 0)), **kept}
    stacked = (np.stack([rows[i.digest][name] for i in instances]) for name in _ROW)
    return Evaluated(who, instances, *stacked)


def _chunks(instances: Sequence[Instance], nodes: int) -> Iterator[list[Instance]]:
    """Runs of instances of about so many nodes, each with one CPU limit."""
    chunk: list[Instance] = []
    for instance in instances:
        full = sum(each.size for each in chunk) + instance.size > nodes
        if chunk and (full or _larger(chunk) != _larger([instance])):
            yield chunk
            chunk = []
        chunk.append(instance)
    if chunk:
        yield chunk


def _larger(instances: Sequence[Instance]) -> float:
    """The factor of a CPU limit: a step costs at least the square of the size."""
    return max(1.0, (max(each.size for each in instances) / 500) ** 2)


def _shown_key(shown: Showing) -> str:
    if isinstance(shown, Shown):
        return repr(shown).replace(", state='stagnation'", "")  # as before there were others
    text = repr(sorted((key, _shown_key(value)) for key, value in shown.items()))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
