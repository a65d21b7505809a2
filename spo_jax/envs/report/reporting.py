"""Tables and progress of `spo evaluate` and `spo baseline`; the console of all commands."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from spo_jax.envs.report.evaluation import GroupResult, InstanceResult, Report
from spo_jax.envs.report.searched import conditions

PIPE_WIDTH = 200  # columns where there is no terminal: one group stays on one line


def console(file: TextIO) -> Console:
    """A console that prints texts as they are."""
    made = Console(file=file, markup=False, highlight=False)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


class Meter:
    """Progress of named stages: a bar if `bar` is a terminal, else plain lines.

    lines: the file for a line per finished stage without a terminal; None prints none.
    """

    def __init__(self, bar: TextIO, lines: TextIO | None):
        self._lines = lines
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console(bar),
            transient=True,
            disable=not console(bar).is_terminal,
        )

    def __enter__(self) -> "Meter":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar.disable:
            if done == total and self._lines is not None:
                print(f"{what}: {total} done", file=self._lines, flush=True)
            return
        if not self._bar.tasks or self._bar.tasks[0].description != what:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(what, total=total)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)


# --- evaluate -------------------------------------------------------------------------------------


def show_report(report: Report, out: Console) -> None:
    """A table of the groups, and below it what is missing from it and why."""
    word = "value" if "maximise" in report.settings else "cost"  # as Problem.word
    columns = ("group", "instances", "gap %", "95% interval", word, "failed", "s/rollout")
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name == "group" else "right", no_wrap=True)
    for group in report.groups:
        found = group.summary
        table.add_row(
            group.name,
            str(found.instances),
            number_text(found.mean_gap, 3),
            interval_text(found.gap_interval),
            number_text(found.mean_cost, 4),
            f"{found.failed}/{found.rollouts}",
            number_text(found.mean_seconds, 3),
        )
    out.print(table)
    lines = [note for group in report.groups for note in notes(group)]
    lines += conditions(**{
        name: report.settings[name]
        for name in ("state", "on_invalid", "acceptance", "start")
        if name in report.settings
    })  # fmt: skip
    lines += [*map(proven, report.groups), *report.remarks, *below_references(report)]
    for line in filter(None, lines):
        out.print(line, soft_wrap=True)


# The libraries' sets whose recorded optima are for as many routes as the name says.
FIXED_FLEET = re.compile(r"[ABP]-n[0-9]+-k[0-9]+")
_SOLVERS = ("LKH", "PyVRP")


def proven(group: GroupResult) -> str:
    """How many references of a group are proven optimal, and their source if there is only one.

    Empty for a group whose references come from files beside the instances.
    """
    known = [instance for instance in group.instances if instance.reference is not None]
    certified = sum(instance.certified for instance in known)
    sources = sorted({instance.reference_source for instance in known})
    if not certified and not any(source.startswith(_SOLVERS) for source in sources):
        return ""
    origin = f" by {sources[0]}" if len(sources) == 1 else ""
    return f"{group.name}: references{origin}; {certified} of {len(known)} are proven optimal"


def below_references(report: Report) -> list[str]:
    """A line for each reason of negative gaps."""
    below = [
        instance
        for group in report.groups
        for instance in group.instances
        if any(rollout.gap is not None and rollout.gap < -1e-6 for rollout in instance.rollouts)
    ]
    fixed = [each for each in below if FIXED_FLEET.fullmatch(each.name)]
    others = [each for each in below if not FIXED_FLEET.fullmatch(each.name)]
    why = (
        "the recorded optima of the sets A, B and P are for exactly as many routes as the name "
        "says, and the fleet is free here, as in the paper",
        "the reference is the best known cost, not an optimum; --references FILE takes better "
        "ones, --reference-effort searches longer",
    )
    return [
        f"Negative gaps on {_named(instances)}: {reason}"
        for instances, reason in zip((fixed, others), why, strict=True)
        if instances
    ]


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
        lines.append(line + ("; --cpu-seconds raises the limit" if tally["timeout"] else ""))
    without = [instance for instance in group.instances if instance.reference is None]
    if without:
        reasons = "; ".join(sorted({instance.reference_source for instance in without})[:3])
        lines.append(
            f"{group.name}: {len(without)} of {found.instances} instances have no reference, "
            f"so no gap ({reasons})"
        )
    return lines


def interval_text(interval: tuple[float, float] | None) -> str:
    """An interval with three decimals; a dash for none."""
    return "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def number_text(value: float | None, digits: int) -> str:
    """A number with so many decimals; a dash for none."""
    return "-" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"  # no -0.000
