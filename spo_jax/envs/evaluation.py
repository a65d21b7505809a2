"""`spo evaluate`: a pair on groups of instances, with gaps to references and intervals.

The report and how it is filled group by group are those of `spo baseline`, too.

A group is what one SPEC names: `uniform:SIZExCOUNT[@SEED]`, an instance file, or a folder of them.
Every rollout keeps its own status: means are over the rollouts that succeeded, and how many did
not is said beside them.
"""

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax import __version__
from spo_jax.envs.evaluator import Evaluator
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.rollouts import Rollouts, Status
from spo_jax.errors import InputError, MissingExtra
from spo_jax.program import Pair

SUFFIXES = {"tsp": ".tsp", "cvrp": ".vrp"}
LARGEST_GROUP = 8 << 30  # bytes of distance matrices, or of recorded costs and states

Progress = Callable[[str, int, int], None]  # (what is being done, done, in all)

_UNIFORM = re.compile(r"uniform:([0-9]{1,6})x([0-9]{1,6})(?:@([0-9]{1,18}))?", re.IGNORECASE)

_NUMBERS = re.compile(r"\[\n((?:\s*[-0-9.e+]+,?\n)+)\s*\]")  # a list of numbers, one a line


# --- what is evaluated on -------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    """One group of instances before it is loaded; text is how the user named it.

    Either uniform (size, count, seed) or the paths of instance files.
    """

    text: str
    uniform: tuple[int, int, int] | None = None
    paths: tuple[Path, ...] = ()

    @property
    def count(self) -> int:
        return len(self.paths) if self.uniform is None else self.uniform[1]

    def load(self, problem: Problem) -> list[Instance]:
        if self.uniform is not None:
            size, count, seed = self.uniform
            return problem.sample(size, count, seed)
        return [problem.read(path) for path in self.paths]


def parse_spec(text: str, problem: Problem) -> Spec:
    """The group that `text` names. Raises InputError if there is no such thing."""
    if text.lower().startswith("uniform:"):
        found = _UNIFORM.fullmatch(text)
        if found is None:
            raise InputError(f"{text!r} is not uniform:SIZExCOUNT[@SEED], e.g. uniform:50x32@1")
        size, count, seed = (int(part or 0) for part in found.groups())
        if count < 1:
            raise InputError(f"{text!r} asks for no instance: COUNT is at least 1")
        if 8 * count * size * size > LARGEST_GROUP:
            raise InputError(
                f"{text!r} needs more than {LARGEST_GROUP >> 30} GB: use smaller groups"
            )
        problem.sample(size, 0, seed)  # for its own limits on the size
        return Spec(text, uniform=(size, count, seed))
    path = Path(text)
    try:
        if path.is_dir():
            return Spec(text, paths=_files(path, problem))
        if path.exists():
            return Spec(text, paths=(path,))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {text!r}: {error}") from None
    raise InputError(
        f"{text} does not exist; --on takes uniform:SIZExCOUNT[@SEED], an instance file or a folder"
    )


def _files(folder: Path, problem: Problem) -> tuple[Path, ...]:
    """The problem's instance files in a folder and below, by path."""
    suffix = SUFFIXES.get(problem.name, getattr(problem, "suffix", None))
    if suffix is None:
        raise InputError(f"{folder}: name the files, as {problem.name!r} has no file suffix")
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() == suffix)
    if not found:
        raise InputError(f"{folder} holds no instance of {problem.name} (no {suffix} file)")
    return tuple(path for path in found if path.is_file())


def with_references(
    instances: list[Instance], cache: Path, progress: Callable[[int, int], None]
) -> list[Instance]:
    """Instances with reference costs from a solver, or without and with the reason."""
    from spo_jax.envs.solvers.references import reference

    known = []
    for done, instance in enumerate(instances, 1):
        try:
            known.append(reference(instance, cache=cache))
        except MissingExtra as error:
            known.append(replace(instance, reference_source=f"none: {error}"))
        progress(done, len(instances))
    return known


def cache_folder() -> Path:
    """Where references are kept: $SPO_CACHE, else the user's cache folder."""
    if named := os.environ.get("SPO_CACHE"):
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "spo-jax"


# --- what comes out -------------------------------------------------------------------------------


@dataclass(frozen=True)
class RolloutResult:
    """One rollout. Costs, gap (percent) and solution are None where there are none.

    status, reason: a Status in lower case, and why unless it is "ok".
    seconds: CPU seconds. solution: nodes or routes, numbered from 0 in the order of the file.
    """

    seed: int
    status: str
    reason: str
    initial_cost: float | None
    best_cost: float | None
    gap: float | None
    seconds: float | None
    solution: Any


@dataclass(frozen=True)
class InstanceResult:
    """One instance; reference_source says where the reference is from, or why there is none."""

    name: str
    size: int
    reference: float | None
    reference_source: str
    rollouts: tuple[RolloutResult, ...]


@dataclass(frozen=True)
class Summary:
    """A group in numbers; None where there is nothing to average.

    rollouts, failed: counts. with_gap: instances that have a gap.
    mean_gap: percent; the mean of the instances' means over their successful rollouts.
    gap_interval: 95% bootstrap interval of mean_gap, resampling instances (of a group of one
        instance, its rollouts); None for fewer than two values.
    mean_cost, mean_seconds: over successful rollouts.
    """

    instances: int
    rollouts: int
    failed: int
    with_gap: int
    mean_gap: float | None
    gap_interval: tuple[float, float] | None
    mean_cost: float | None
    mean_seconds: float | None


@dataclass(frozen=True)
class GroupResult:
    name: str
    summary: Summary
    instances: tuple[InstanceResult, ...]


@dataclass(frozen=True)
class Report:
    """What `spo evaluate --json` and `spo baseline --json` write.

    pair: what was evaluated, or None for a baseline, which `baseline` then names.
    complete: whether all groups are in it.
    """

    spo_jax: str
    problem: str
    pair: dict[str, str] | None
    settings: dict[str, Any]
    baseline: dict[str, str] | None = None
    sandbox: dict[str, bool] = field(default_factory=dict)
    complete: bool = False
    groups: tuple[GroupResult, ...] = ()

    def to_json(self) -> str:
        """Strict JSON: what is missing is null."""
        text = json.dumps(asdict(self), indent=1, allow_nan=False)
        return _NUMBERS.sub(lambda found: "[" + " ".join(found[1].split()) + "]", text) + "\n"


def evaluate(
    pair: Pair,
    problem: Problem,
    specs: Sequence[str],
    *,
    steps: int = 500,
    seeds: int = 3,
    workers: int = 1,
    cpu_seconds: float | None = None,
    on_invalid: str = "fail",
    references: str = "solve",
    cache: str | Path | None = None,
    unsafe: bool = False,
    progress: Progress = lambda what, done, total: None,
    save: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Roll `pair` out on every instance of every spec with seeds 0, 1, ..., seeds - 1.

    cpu_seconds: limit of a 500-step rollout, scaled to `steps`; the problem's own by default.
    references: "solve" finds references of uniform instances where a solver is installed, kept in
        the folder `cache`; "none" does not. Files bring their own.
    progress: called as things get done. save: called with the report so far after each group.

    All specs are read before anything runs. Raises InputError for what cannot be read and
    a program of the pair that the gate refuses, SandboxUnavailable where no program can be run.
    """
    if seeds < 1 or steps < 1:
        raise InputError(f"steps and seeds must be at least 1, not {steps} and {seeds}")
    plans = parse_specs(specs, problem, references)
    for plan in plans:
        if 12 * plan.count * seeds * steps > LARGEST_GROUP:
            raise InputError(f"{plan.text}: {steps} steps of {seeds} seeds do not fit into memory")
    settings = {
        "steps": steps,
        "seeds": list(range(seeds)),
        "cpu_seconds": problem.cpu_seconds if cpu_seconds is None else cpu_seconds,
        "on_invalid": on_invalid,
        "references": references,
    }
    told = {"destroy": pair.destroy.strategy, "repair": pair.repair.strategy, "digest": pair.digest}
    with Evaluator(
        problem, workers, cpu_seconds=cpu_seconds, on_invalid=on_invalid, unsafe=unsafe
    ) as evaluator:
        require_lawful(evaluator, pair)
        report = Report(__version__, problem.name, told, settings, sandbox=evaluator.layers)

        def run(instances: list[Instance], progress: Callable[[int, int], None]) -> Rollouts:
            return evaluator.run(
                [pair],
                instances,
                seeds=range(seeds),
                steps=steps,
                fail_fast=False,
                progress=progress,
            )

        return filled(report, problem, plans, run, cache=cache, progress=progress, save=save)


def parse_specs(specs: Sequence[str], problem: Problem, references: str) -> list[Spec]:
    """The groups that `specs` name, their files read once. Raises InputError."""
    if references not in ("solve", "none"):
        raise InputError(f"references must be 'solve' or 'none', not {references!r}")
    if not specs:
        raise InputError(
            "there is nothing to evaluate on: name an instance, a folder or uniform:..."
        )
    plans = [parse_spec(text, problem) for text in specs]
    for plan in plans:
        if plan.uniform is None:
            plan.load(problem)  # a bad file must not be found out an hour later
    return plans


def filled(
    report: Report,
    problem: Problem,
    plans: Sequence[Spec],
    run: Callable[[list[Instance], Callable[[int, int], None]], Rollouts],
    *,
    cache: str | Path | None,
    progress: Progress,
    save: Callable[[Report], None],
) -> Report:
    """`report` with one group a plan; its settings say what seeds and references are used.

    run: the rollouts [1, I, S] of some instances; told where to report (done, in all).
    """
    for number, plan in enumerate(plans, 1):
        instances = plan.load(problem)
        if report.settings["references"] == "solve" and plan.uniform is not None:
            folder = cache_folder() if cache is None else Path(cache)
            instances = with_references(
                instances, folder, partial(progress, f"{plan.text}: references")
            )
        rollouts = run(instances, partial(progress, f"{plan.text}: rollouts"))
        group = group_result(plan.text, problem, instances, report.settings["seeds"], rollouts)
        report = replace(report, groups=(*report.groups, group), complete=number == len(plans))
        save(report)
    return report


def require_lawful(evaluator: Evaluator, pair: Pair) -> None:
    """Raises InputError if the sandbox's gate refuses a program of `pair` for this problem."""
    programs = (pair.destroy, pair.repair)
    for program, reason in zip(programs, evaluator.check(programs), strict=True):
        if reason is not None:
            problem = evaluator.problem.name
            raise InputError(f"the {program.role} program cannot run on {problem}: {reason}")


def group_result(
    name: str,
    problem: Problem,
    instances: Sequence[Instance],
    seeds: Sequence[int],
    rollouts: Rollouts,
) -> GroupResult:
    """The group of one pair's rollouts ([1, I, S])."""
    from spo_jax.envs.metrics import reference_gap

    known = np.array([[math.nan if i.reference is None else i.reference] for i in instances])
    gaps = reference_gap(rollouts.final_cost[0], known)
    results = tuple(
        InstanceResult(
            instance.name,
            instance.size,
            instance.reference,
            instance.reference_source,
            tuple(
                _rollout(problem, instance, rollouts, gaps, i, s, seed)
                for s, seed in enumerate(seeds)
            ),
        )
        for i, instance in enumerate(instances)
    )
    return GroupResult(name, summarise(results), results)


def _rollout(
    problem: Problem,
    instance: Instance,
    rollouts: Rollouts,
    gaps: np.ndarray,
    i: int,
    s: int,
    seed: int,
) -> RolloutResult:
    status = Status(int(rollouts.status[0, i, s]))
    solution = None
    if status is Status.OK:
        walk = rollouts.walk[0, i, s, : problem.walk_length(instance)]
        solution = problem.decode(instance, walk.tolist())
    return RolloutResult(
        seed=seed,
        status=status.label,
        reason=str(rollouts.reason[0, i, s]),
        initial_cost=_number(rollouts.initial_cost[0, i, s]),
        best_cost=_number(rollouts.final_cost[0, i, s]),
        gap=_number(gaps[i, s]),
        seconds=_number(rollouts.seconds[0, i, s]),
        solution=solution,
    )


def summarise(instances: Sequence[InstanceResult]) -> Summary:
    """The numbers of one group."""
    from spo_jax.envs.metrics import bootstrap_interval

    every = [rollout for instance in instances for rollout in instance.rollouts]
    ok = [rollout for rollout in every if rollout.status == "ok"]
    by_instance = [
        [rollout.gap for rollout in instance.rollouts if rollout.gap is not None]
        for instance in instances
    ]
    by_instance = [gaps for gaps in by_instance if gaps]
    means = [_mean(gaps) for gaps in by_instance]
    values = by_instance[0] if len(instances) == len(by_instance) == 1 else means
    return Summary(
        instances=len(instances),
        rollouts=len(every),
        failed=len(every) - len(ok),
        with_gap=len(means),
        mean_gap=_mean(means),
        gap_interval=bootstrap_interval(np.array(values)) if len(values) > 1 else None,
        mean_cost=_mean([each.best_cost for each in ok if each.best_cost is not None]),
        mean_seconds=_mean([each.seconds for each in ok if each.seconds is not None]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    return math.fsum(values) / len(values) if values else None  # type: ignore[arg-type]


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
