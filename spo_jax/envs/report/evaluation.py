"""`spo evaluate`: a pair on groups of instances, with gaps to references and intervals.

The report and how it is filled group by group are those of `spo baseline`, too.

Every rollout keeps its own status: means are over the rollouts that succeeded, and how many did
not is said beside them.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax import __version__
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.evaluator import Evaluator, EvaluatorFactory
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.envs.run.shown import shown_with
from spo_jax.envs.specs import (
    LARGEST_GROUP,
    Spec,
    cache_folder,
    own_references,
    parse_specs,
    reference_settings,
    remarks_on,
    with_references,
)
from spo_jax.errors import InputError
from spo_jax.program import Pair

Progress = Callable[[str, int, int], None]  # (what is being done, done, in all)

_NUMBERS = re.compile(r"\[\n((?:\s*[-0-9.e+]+,?\n)+)\s*\]")  # a list of numbers, one a line


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
    """One instance; reference_source says where the reference is from, or why there is none.

    certified: whether the reference is proven optimal.
    """

    name: str
    size: int
    reference: float | None
    reference_source: str
    certified: bool
    rollouts: tuple[RolloutResult, ...]


@dataclass(frozen=True)
class Summary:
    """A group in numbers; None where there is nothing to average.

    rollouts, failed: counts. with_gap: instances that have a gap.
    mean_gap: percent; the mean of the instances' means over their successful rollouts.
    gap_interval: 95% interval of mean_gap over instances (of a group of one instance, over its
        rollouts), see `intervals.mean_interval`; None for fewer than two values.
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
    complete: whether all groups are in it. remarks: what there is to say of the user's references.
    """

    spo_jax: str
    problem: str
    pair: dict[str, str] | None
    settings: dict[str, Any]
    baseline: dict[str, str] | None = None
    sandbox: dict[str, bool] = field(default_factory=dict)
    complete: bool = False
    remarks: tuple[str, ...] = ()
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
    state: bool = True,
    references: str = "solve",
    effort: str = "standard",
    cache: str | Path | None = None,
    unsafe: bool = False,
    evaluator: EvaluatorFactory = LocalEvaluator,
    progress: Progress = lambda what, done, total: None,
    save: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Roll `pair` out on every instance of every spec with seeds 0, 1, ..., seeds - 1.

    cpu_seconds: limit of a 500-step rollout, scaled to `steps`; the problem's own by default.
    state: whether the programs see steps_since_improvement; else they see 0 at every step.
    references: "solve" looks those of uniform instances up among what ships and in the folder
        `cache`, else solves for them with `effort` where a solver is installed; "none" does not.
        Instance files bring their own. Anything else is a file of references, which may be better
        than either (`solvers.reference_files`).
    evaluator: makes what runs the pair.
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
        "state": state,
        **reference_settings(references, effort),
    }
    told = {"destroy": pair.destroy.strategy, "repair": pair.repair.strategy, "digest": pair.digest}
    with evaluator(
        problem,
        workers,
        cpu_seconds=cpu_seconds,
        on_invalid=on_invalid,
        shown=shown_with(state),
        unsafe=unsafe,
    ) as started:
        require_lawful(started, problem, pair)
        report = Report(__version__, problem.name, told, settings, sandbox=dict(started.layers))

        def run(instances: list[Instance], progress: Callable[[int, int], None]) -> Rollouts:
            return started.run(
                [pair],
                instances,
                seeds=range(seeds),
                steps=steps,
                fail_fast=False,
                progress=progress,
            )

        return filled(report, problem, plans, run, cache=cache, progress=progress, save=save)


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

    Raises InputError for references of the user that are of other instances.
    """
    from spo_jax.envs.report.references import known

    own = own_references(report.settings["references"])
    report = replace(report, remarks=remarks_on(own, plans, problem))
    for number, plan in enumerate(plans, 1):
        instances = plan.load(problem)
        if report.settings["references"] != "none" and plan.uniform is not None:
            folder = cache_folder() if cache is None else Path(cache)
            effort = report.settings["reference_effort"]
            told = partial(progress, f"{plan.text}: references")
            instances = with_references(problem, instances, folder, told, effort, own)
        elif own is not None:
            instances = [known(problem, instance, own=own) or instance for instance in instances]
        rollouts = run(instances, partial(progress, f"{plan.text}: rollouts"))
        group = group_result(plan.text, problem, instances, report.settings["seeds"], rollouts)
        report = replace(report, groups=(*report.groups, group), complete=number == len(plans))
        save(report)
    return report


def require_lawful(evaluator: Evaluator, problem: Problem, pair: Pair) -> None:
    """Raises InputError if the sandbox's gate refuses a program of `pair` for this problem."""
    programs = (pair.destroy, pair.repair)
    for program, reason in zip(programs, evaluator.check(programs), strict=True):
        if reason is not None:
            raise InputError(f"the {program.role} program cannot run on {problem.name}: {reason}")


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
            instance.certified,
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
        solution = problem.decode(instance, rollouts.code_of(0, i, s))
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
    from spo_jax.envs.report.intervals import mean_interval

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
        gap_interval=mean_interval(np.array(values)) if len(values) > 1 else None,
        mean_cost=_mean([each.best_cost for each in ok if each.best_cost is not None]),
        mean_seconds=_mean([each.seconds for each in ok if each.seconds is not None]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    return math.fsum(values) / len(values) if values else None  # type: ignore[arg-type]


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
