"""What `spo evaluate`, `spo solve` and `spo doctor` show: texts and tables, no work."""

import re
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from spo_jax.envs.report.doctor import Finding, healthy
from spo_jax.envs.report.evaluation import GroupResult, InstanceResult, Report
from spo_jax.envs.report.solve import MOST_STEPS, Solved
from spo_jax.envs.textfiles import cost_text

PIPE_WIDTH = 200  # columns where there is no terminal: one group stays on one line


def console(file: TextIO) -> Console:
    """A console that prints texts as they are."""
    made = Console(file=file, markup=False, highlight=False)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


class Meter:
    """Progress of named stages: a bar where errors go if that is a terminal, else plain lines.

    lines: where a finished stage is told without a terminal; None tells nothing.
    """

    def __init__(self, bar: TextIO, lines: TextIO | None):
        self._lines = lines
        self._bar: Progress | None = None
        self._what = ""
        terminal = console(bar)
        if terminal.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=terminal,
                transient=True,
            )

    def __enter__(self) -> "Meter":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar is None:
            if done == total and self._lines is not None:
                print(f"{what}: {total} done", file=self._lines, flush=True)
            return
        if what != self._what:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(what, total=total)
            self._what = what
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)


# --- evaluate -------------------------------------------------------------------------------------


def show_report(report: Report, out: Console) -> None:
    """A table of the groups, and below it what is missing from it and why."""
    columns = ("group", "instances", "gap %", "95% interval", "cost", "failed", "s/rollout")
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name == "group" else "right", no_wrap=True)
    for group in report.groups:
        found = group.summary
        table.add_row(
            group.name,
            str(found.instances),
            _number(found.mean_gap, 3),
            _interval(found.gap_interval),
            _number(found.mean_cost, 4),
            f"{found.failed}/{found.rollouts}",
            _number(found.mean_seconds, 3),
        )
    out.print(table)
    for group in report.groups:
        for note in notes(group):
            out.print(note, soft_wrap=True)
    told = report.settings
    terms = conditions(told.get("state", True), told.get("on_invalid", "fail"))
    lines = (*terms, *map(proven, report.groups), *report.remarks, *below_references(report))
    for line in lines:
        if line:
            out.print(line, soft_wrap=True)


def conditions(state: bool, on_invalid: str) -> list[str]:
    """How programs ran, where that is not as usual: a run's pair runs as it was discovered."""
    lines = []
    if not state:
        lines.append("discovered without the LNS state: steps_since_improvement is 0 at every step")
    if on_invalid == "skip":
        lines.append("an infeasible candidate is a rejected step (on_invalid = skip)")
    return lines


# The libraries' sets whose recorded optima are for as many routes as the name says.
_FIXED_FLEET = re.compile(r"[ABP]-n[0-9]+-k[0-9]+")
_SOLVERS = ("LKH", "PyVRP")


def proven(group: GroupResult) -> str:
    """How many of a group's references are proven optimal, and who found them if that is one line.

    Nothing of a group whose references are those of files beside the instances.
    """
    known = [instance for instance in group.instances if instance.reference is not None]
    certified = sum(instance.certified for instance in known)
    sources = sorted({instance.reference_source for instance in known})
    if not certified and not any(source.startswith(_SOLVERS) for source in sources):
        return ""
    origin = f" by {sources[0]}" if len(sources) == 1 else ""
    return f"{group.name}: references{origin}; {certified} of {len(known)} are proven optimal"


def below_references(report: Report) -> list[str]:
    """Why there are negative gaps, if there are: a line for each reason."""
    below = [
        instance
        for group in report.groups
        for instance in group.instances
        if any(rollout.gap is not None and rollout.gap < -1e-6 for rollout in instance.rollouts)
    ]
    fixed = [each for each in below if _FIXED_FLEET.fullmatch(each.name)]
    others = [each for each in below if not _FIXED_FLEET.fullmatch(each.name)]
    lines = []
    if fixed:
        lines.append(
            f"Negative gaps on {_named(fixed)}: the recorded optima of the sets A, B and P are for "
            "exactly as many routes as the name says, and the fleet is free here, as in the paper"
        )
    if others:
        lines.append(
            f"Negative gaps on {_named(others)}: the reference is the best that was known and no "
            "optimum; --references FILE takes better ones, --reference-effort searches longer"
        )
    return lines


def _named(instances: Sequence[InstanceResult]) -> str:
    """The first few names."""
    names = ", ".join(instance.name for instance in instances[:6])
    return names + (f" and {len(instances) - 6} more" if len(instances) > 6 else "")


def notes(group: GroupResult) -> list[str]:
    """What the numbers of a group leave out: failed rollouts, instances without a reference."""
    found = group.summary
    lines = []
    failed = [
        (instance.name, rollout)
        for instance in group.instances
        for rollout in instance.rollouts
        if rollout.status != "ok"
    ]
    if failed:
        tally = Counter(rollout.status for _, rollout in failed)
        kinds = ", ".join(f"{count} {status}" for status, count in sorted(tally.items()))
        name, first = failed[0]
        line = (
            f"{group.name}: {found.failed} of {found.rollouts} rollouts failed and are in no mean "
            f"({kinds}); the first, {name} seed {first.seed}: {first.reason}"
        )
        hint = "; --cpu-seconds raises the limit" if tally["timeout"] else ""
        lines.append(line + hint)
    without = [instance for instance in group.instances if instance.reference is None]
    if without:
        reasons = "; ".join(sorted({instance.reference_source for instance in without})[:3])
        lines.append(
            f"{group.name}: {len(without)} of {found.instances} instances have no reference, "
            f"so no gap ({reasons})"
        )
    return lines


def _interval(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"  # no -0.000


# --- solve ----------------------------------------------------------------------------------------


def solved_lines(found: Solved) -> list[str]:
    """Cost, gap and effort of a solution."""
    instance = found.instance
    if found.gap is None:
        gap = f"gap unknown ({instance.reference_source})"
    else:
        reference = cost_text(instance.reference or 0.0)
        gap = f"gap {found.gap:.3f}% to {reference} ({instance.reference_source})"
    lines = [
        f"{instance.name}: cost {_cost(found.cost)}, {gap}",
        f"started at {_cost(found.initial_cost)}; {found.steps} steps with seed {found.seed}; "
        f"{found.seconds:.2f} CPU seconds for {found.rollouts} rollout(s)",
    ]
    if found.steps >= MOST_STEPS:
        lines.append(
            f"stopped before the time was up: {MOST_STEPS} steps are the most there can be"
        )
    if found.failed:
        status, reason = found.failed[0]
        lines.append(f"{len(found.failed)} of {found.rollouts} rollouts failed: {status}: {reason}")
    return lines


def _cost(cost: float) -> str:
    return cost_text(cost) if cost.is_integer() else f"{cost:.4f}"


# --- doctor ---------------------------------------------------------------------------------------


def show_findings(findings: Sequence[Finding], out: Console) -> None:
    """Findings by section, each with a tick, a cross or (where it does no harm) a dash."""
    marks = {True: "✓", False: "✗", None: "-"}
    section = ""
    for finding in findings:
        if finding.section != section:
            section = finding.section
            out.print(section)
        line = f"  {marks[finding.ok]} {finding.name:<15} {finding.text}"
        if finding.remedy:
            line += f"\n      {finding.remedy}"
        out.print(line, soft_wrap=True)
    if healthy(tuple(findings)):
        out.print("ready: spo discover tsp")
    else:
        out.print("not ready: mend what is marked ✗", soft_wrap=True)
