"""`spo evaluate`: runs a pair on groups of instances and reports gaps with intervals.

`spo baseline` writes the same report. Each rollout keeps its status: means are over the rollouts
that succeeded, and the report counts those that failed.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax import __version__
from spo_jax.cache import cache_folder
from spo_jax.constants import current
from spo_jax.envs.files.labels import with_unique_names
from spo_jax.envs.files.reading import AS_STATED, Reading, remarks_on_files
from spo_jax.envs.files.specs import (
    LARGEST_GROUP,
    Spec,
    own_references,
    parse_specs,
    reference_settings,
    remarks_on,
    with_references,
)
from spo_jax.envs.files.textfiles import jsonable
from spo_jax.envs.gaps import reference_gap
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.report.directed import remarks_on_pairs
from spo_jax.envs.run.acceptance import PAPER
from spo_jax.envs.run.evaluator import EvaluatorFactory, Spread, require_lawful
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import shown_with
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.envs.run.starts import RANDOM
from spo_jax.envs.run.states import STAGNATION
from spo_jax.errors import InputError
from spo_jax.program import Pair

Progress = Callable[[str, int, int], None]  # (stage, done, total)

_NUMBERS = re.compile(r"\[\n((?:\s*[-0-9.e+]+,?\n)+)\s*\]")  # a list with a number per line


@dataclass(frozen=True)
class RolloutResult:
    """One rollout; a missing cost, gap or solution is None.

    Attributes:
        seed: The rollout's.
        status: A Status in lower case.
        reason: Empty if the status is "ok".
        initial_cost: The objective of the start.
        best_cost: The best objective.
        gap: Percent.
        seconds: CPU seconds.
        solution: Nodes or routes, numbered from 0 in the order of the file.
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
    """One instance.

    Attributes:
        name: The instance's.
        size: In the problem's unit.
        reference: The cost that gaps are measured from; None without one.
        reference_source: The origin of the reference, or why there is none.
        certified: Whether the reference is proven optimal.
        rollouts: One per seed.
    """

    name: str
    size: int
    reference: float | None
    reference_source: str
    certified: bool
    rollouts: tuple[RolloutResult, ...]


@dataclass(frozen=True)
class Summary:
    """Counts and means of a group; None without a value to average.

    Attributes:
        instances: How many.
        rollouts: How many, in all.
        failed: Rollouts whose status is not "ok".
        with_gap: Instances that have a gap.
        mean_gap: Percent; the mean of the instances' means over their successful rollouts.
        gap_interval: 95% interval of mean_gap over instances (with one instance, over its
            rollouts), see `intervals.mean_interval`; None for fewer than two values. It ends at 0
            where the references of all gaps are proven optimal: no mean is below.
        mean_cost: Over successful rollouts.
        mean_seconds: Likewise.
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
    """One group of instances, as one of the specs names it.

    Attributes:
        name: The group's.
        summary: Counts and means.
        instances: One by one.
    """

    name: str
    summary: Summary
    instances: tuple[InstanceResult, ...]


@dataclass(frozen=True)
class Report:
    """What `spo evaluate --json` and `spo baseline --json` write.

    Attributes:
        spo_jax: The package's version.
        problem: The problem's name.
        pair: The evaluated pair, or None for a baseline, which `baseline` names.
        settings: What it was evaluated with.
        baseline: The baseline, or None for a pair.
        sandbox: Which of its layers held.
        complete: Whether it has all groups.
        remarks: On the user's file of references and on instance files.
        groups: Those that are finished, in order.
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
        """Strict JSON; a missing value is null."""
        text = json.dumps(jsonable(asdict(self)), indent=1, allow_nan=False)
        return _NUMBERS.sub(lambda match: "[" + " ".join(match[1].split()) + "]", text) + "\n"


def evaluate(
    pair: Pair,
    problem: Problem,
    specs: Sequence[str] | Sequence[Instance],
    *,
    steps: int = 500,
    seeds: int = 3,
    workers: int = 1,
    cpu_seconds: float | None = None,
    on_invalid: str = "fail",
    state: bool | str = STAGNATION,
    acceptance: str = PAPER,
    start: str = RANDOM,
    references: str = "solve",
    effort: str = "standard",
    reading: Reading = AS_STATED,
    cache: str | Path | None = None,
    unsafe: bool = False,
    evaluator: EvaluatorFactory = LocalEvaluator,
    progress: Progress = lambda what, done, total: None,
    save: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Roll `pair` out on every instance of every spec with seeds 0, 1, ..., seeds - 1.

    Reads all specs before it runs anything.

    Args:
        pair: The pair.
        problem: Its problem.
        specs: Groups of instances, or instances in memory, which are one group.
        steps: LNS iterations of a rollout.
        seeds: Rollouts of each instance.
        workers: Processes.
        cpu_seconds: Limit of a 500-step rollout, scaled to `steps`; the problem's own by default.
        on_invalid: "fail" or "skip": an infeasible candidate fails the rollout, or is a rejected
            step.
        state: What programs are shown of the search: a name of STATES, "package.module:NAME", or
            "none", for which they see 0 at every step.
        acceptance: What a rollout accepts, as `LocalEvaluator` has it.
        start: Its first solution, likewise.
        references: "solve" takes the references of uniform instances, and of those in memory that
            have none, from the package or the folder `cache`, else computes them with `effort` if a
            solver is installed; "none" does not. Instance files bring their own. Any other value is
            the path of a file of references, which may have better ones (`reference_files`).
        effort: Of the solver.
        reading: How instance files are read.
        cache: The folder of computed references, by default that of `cache_folder`.
        unsafe: Whether programs run even where the sandbox is incomplete.
        evaluator: The factory of the evaluator that runs the pair.
        progress: Called with the state of the work.
        save: Called with the report after each group.

    Returns:
        A group of results for each spec.

    Raises:
        InputError: A spec cannot be read, or the gate refuses a program.
        SandboxUnavailable: No program can run.
    """
    if seeds < 1 or steps < 1:
        raise InputError(f"steps and seeds must be at least 1, not {steps} and {seeds}")
    plans = parse_specs(specs, problem, references, reading)
    for plan in plans:
        if 12 * plan.count * seeds * steps > LARGEST_GROUP:
            raise InputError(f"{plan.text}: {steps} steps of {seeds} seeds do not fit into memory")
    settings = {
        "steps": steps,
        "seeds": list(range(seeds)),
        "cpu_seconds": problem.cpu_seconds if cpu_seconds is None else cpu_seconds,
        "on_invalid": on_invalid,
        "state": current("state", state),
        "acceptance": acceptance,
        "start": start,
        **reference_settings(references, effort),
        **problem.sense,
        **reading.given,
    }
    about = {
        "destroy": pair.destroy.strategy,
        "repair": pair.repair.strategy,
        "digest": pair.digest,
    }
    with evaluator(
        problem,
        workers,
        cpu_seconds=cpu_seconds,
        on_invalid=on_invalid,
        shown=shown_with(settings["state"]),
        unsafe=unsafe,
        acceptance=acceptance,
        start=start,
    ) as started:
        require_lawful(started, problem, pair)
        report = Report(__version__, problem.name, about, settings, sandbox=dict(started.layers))
        if isinstance(started, Spread):
            messages: list[str] = []
            started.listen(messages.append)
            report = replace(report, remarks=tuple(messages))

        def run(instances: list[Instance], progress: Callable[[int, int], None]) -> Rollouts:
            return started.run(
                [pair],
                instances,
                seeds=range(seeds),
                steps=steps,
                fail_fast=False,
                progress=progress,
            )

        def remarks(instances: list[Instance]) -> list[str]:
            return remarks_on_pairs(problem, instances, {"the pair": pair})

        return filled(
            report, problem, plans, run, cache=cache, progress=progress, save=save, remarks=remarks
        )


def filled(
    report: Report,
    problem: Problem,
    plans: Sequence[Spec],
    run: Callable[[list[Instance], Callable[[int, int], None]], Rollouts],
    *,
    cache: str | Path | None,
    progress: Progress,
    save: Callable[[Report], None],
    remarks: Callable[[list[Instance]], list[str]] = lambda instances: [],
) -> Report:
    """Fill `report` with one group per plan; its settings give the seeds and references.

    Args:
        report: Without groups.
        problem: Of the instances.
        plans: What each group is of.
        run: Computes the rollouts [1, I, S] of instances and reports (done, total) to its callback.
        cache: The folder of computed references; None: `cache_folder()`.
        progress: Called with the state of the work.
        save: Called with the report after each group.
        remarks: What there is to say of instances beside what their reader says.

    Returns:
        The report with all groups.

    Raises:
        InputError: The user's references belong to other instances.
    """
    from spo_jax.envs.report.references import known

    own = own_references(report.settings["references"])
    report = replace(report, remarks=(*report.remarks, *remarks_on(own, plans, problem)))
    for number, plan in enumerate(plans, 1):
        instances = plan.load(problem)
        labelled = with_unique_names(instances)
        new_remarks = *remarks_on_files(labelled), *remarks(labelled)
        report = replace(report, remarks=(*report.remarks, *new_remarks))
        if report.settings["references"] != "none" and not plan.paths:
            folder = cache_folder() if cache is None else Path(cache)
            effort = report.settings["reference_effort"]
            solved = partial(progress, f"{plan.text}: references")
            instances = with_references(problem, instances, folder, solved, effort, own)
        elif own is not None:
            instances = [known(problem, instance, own=own) or instance for instance in instances]
        rollouts = run(instances, partial(progress, f"{plan.text}: rollouts"))
        labelled = with_unique_names(instances)
        group = group_result(plan.text, problem, labelled, report.settings["seeds"], rollouts)
        report = replace(report, groups=(*report.groups, group), complete=number == len(plans))
        save(report)
    return report


def group_result(
    name: str,
    problem: Problem,
    instances: Sequence[Instance],
    seeds: Sequence[int],
    rollouts: Rollouts,
) -> GroupResult:
    """The group of one pair's rollouts ([1, I, S])."""
    known = np.array([[math.nan if i.reference is None else i.reference] for i in instances])
    gaps = reference_gap(rollouts.final_cost[0], problem.turned(known))
    initial, final = map(problem.turned, (rollouts.initial_cost[0], rollouts.final_cost[0]))

    def result(i: int, s: int) -> RolloutResult:
        status = Status(int(rollouts.status[0, i, s]))
        ok = status is Status.OK
        return RolloutResult(
            seed=seeds[s],
            status=status.label,
            reason=problem.interface.game.told(str(rollouts.reason[0, i, s])),
            initial_cost=_number(initial[i, s]),
            best_cost=_number(final[i, s]),
            gap=_number(gaps[i, s]),
            seconds=_number(rollouts.seconds[0, i, s]),
            solution=problem.decode(instances[i], rollouts.code_of(0, i, s)) if ok else None,
        )

    results = tuple(
        InstanceResult(
            instance.name,
            instance.size,
            instance.reference,
            instance.reference_source,
            instance.certified,
            tuple(result(i, s) for s in range(len(seeds))),
        )
        for i, instance in enumerate(instances)
    )
    return GroupResult(name, summarise(results), results)


def summarise(instances: Sequence[InstanceResult]) -> Summary:
    """The numbers of one group."""
    from spo_jax.envs.report.intervals import mean_interval

    every = [rollout for instance in instances for rollout in instance.rollouts]
    ok = [rollout for rollout in every if rollout.status == "ok"]
    gaps = [[each.gap for each in i.rollouts if each.gap is not None] for i in instances]
    by_instance = [each for each in gaps if each]
    means = [known_mean(each) for each in by_instance]
    values = by_instance[0] if len(instances) == len(by_instance) == 1 else means
    interval = mean_interval(np.array(values)) if len(values) > 1 else None
    if interval and all(i.certified for i, known in zip(instances, gaps, strict=True) if known):
        low, high = interval
        interval = max(low, min(0.0, *values)), high
    return Summary(
        instances=len(instances),
        rollouts=len(every),
        failed=len(every) - len(ok),
        with_gap=len(means),
        mean_gap=known_mean(means),
        gap_interval=interval,
        mean_cost=known_mean(each.best_cost for each in ok),
        mean_seconds=known_mean(each.seconds for each in ok),
    )


def known_mean(values: Iterable[float | None]) -> float | None:
    """The mean of those that are known; None without any."""
    known = [each for each in values if each is not None]
    return math.fsum(known) / len(known) if known else None


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
