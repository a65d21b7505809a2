"""The tables of a comparison, and the folder that `spo compare` writes."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from spo_jax import __version__
from spo_jax.constants import TERMS, current
from spo_jax.envs.files.labels import labels
from spo_jax.envs.files.textfiles import csv_text, shown_cost, write_atomically
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.report.compare import BEST_HERE, MISSING, Attempt, Comparison, late
from spo_jax.envs.report.comparison.curves import METHOD_COLUMNS, plot_curves, points
from spo_jax.envs.report.comparison.methods import Method, PairSearch
from spo_jax.envs.report.evaluation import known_mean
from spo_jax.envs.report.plot import SUFFIXES
from spo_jax.envs.report.reporting import FIXED_FLEET, interval_text, number_text
from spo_jax.envs.report.solve import default_start
from spo_jax.envs.report.writing import Outputs
from spo_jax.errors import InputError

MARK = "spo compare"  # what tells that the tables of a folder are ours
TABLES = ("table.md", "table.csv", "table.json", "curves.csv")
SOLVERS = ("elkai", "ortools", "pyvrp")  # whose versions are reported
NO_STEP = "*"  # marks a search that had no time for a step
LONGEST = 120  # bytes of a part of a file name
COLUMNS = (
    "instance", "size", "reference", "reference_source", "method", "seed", "status", "cost", "gap",
    "seconds", "cpu_seconds", "cores", "solution", "reason", "steps",
)  # fmt: skip


class Shown(NamedTuple):
    """A table of texts; the first `left` columns are words."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: int


# --- tables ---------------------------------------------------------------------------------------


def heading(found: Comparison) -> str:
    """What was equal for all."""
    seeds = f", {found.seeds} seeds" if found.seeds > 1 else ""
    cores = "1 core" if found.workers == 1 else f"{found.workers} cores"
    return f"{found.seconds:g} s of wall-clock time for each method and instance, {cores}{seeds}"


def took(
    instances: Sequence[Instance], methods: Sequence[Method], seconds: float, seeds: int
) -> str:
    """How long a comparison takes, for those who wait for it."""
    there = [each for each in methods if not each.missing]
    timed = [each for each in there if "seconds" in each.takes]
    whole = len(instances) * seconds * sum(seeds if each.seeded else 1 for each in timed)
    counts = ((len(instances), "instance"), (len(there), "method"), (seeds, "seed"))
    for_each = ", ".join(f"{count} {unit}" + "s" * (count != 1) for count, unit in counts)
    least = f"{whole / 60:.1f} minutes" if whole >= 90 else f"{whole:.0f} seconds"
    return f"{for_each}, {seconds:g} s each: at least {least}"


def by_instance(found: Comparison) -> Shown:
    """A row for each instance and method: the best cost, and means over its seeds."""
    rows, ranked, turned = [], found.ranked(), found.problem.turned
    for instance in found.instances:
        for method in ranked:
            tried = found.of(method, instance)
            good = [each for each in tried if each.ok]
            if not tried:
                continue
            gaps = [found.gap(instance, each.found.cost) for each in good]
            cost = min((each.found.cost for each in good), key=turned, default=math.nan)
            rows.append(
                (
                    instance.name,
                    method.name,
                    shown_cost(cost) if good else tried[0].found.status,
                    number_text(known_mean(gaps), 3),
                    number_text(known_mean([each.found.seconds for each in good]), 2),
                    number_text(known_mean([each.found.cpu_seconds for each in good]), 2),
                    str(tried[0].cores) if good else "-",
                    steps_text([each.found.steps for each in good]),
                )
            )
    return Shown(
        ("instance", "method", found.problem.word, "gap %", "s", "CPU s", "cores", "steps"), rows, 2
    )


def steps_text(steps: Sequence[int | None]) -> str:
    """The mean steps of searches; marked where one had no time for any, a dash where none are."""
    known = [each for each in steps if each is not None]
    if not known:
        return "-"
    return f"{sum(known) / len(known):.0f}" + NO_STEP * (0 in known)


def by_method(found: Comparison) -> Shown:
    """A row for each method: its mean gap with an interval, and the mean of its seconds."""
    rows = []
    for method in found.ranked():
        summary = found.summary(method)
        good = [each for each in found.attempts if each.ok and each.method is method]
        rows.append(
            (
                method.name,
                f"{summary.with_gap}/{len(found.instances)}",
                number_text(summary.mean_gap, 3),
                interval_text(summary.gap_interval),
                "missing" if method.missing else f"{summary.failed}/{summary.rollouts}",
                number_text(summary.mean_seconds, 2),
                number_text(known_mean([each.found.cpu_seconds for each in good]), 2),
                str(max(each.cores for each in good)) if good else "-",
            )
        )
    columns = "method", "instances", "gap %", "95% interval", "failed", "s", "CPU s", "cores"
    return Shown(columns, rows, 1)


def notes(found: Comparison) -> list[str]:
    """What the tables leave out, in sentences."""
    lines = []
    if found.stop is not None:
        lines.append(f"stopped early: {len(found.attempts)} attempts are finished, the rest is not")
    lines += [f"{each.name}: {each.missing}" for each in found.methods if each.missing]
    lines += searches(found)
    for each in found.attempts:
        if not each.ok and each.found.status != MISSING:
            what = f"{each.method.name} on {each.instance.name}, seed {each.seed}"
            lines.append(f"{what}: {each.found.status}: {each.found.reason}")
    for method in found.methods:
        idle = [each.instance.name for each in found.attempts
                if each.method is method and each.found.steps == 0]  # fmt: skip
        if idle:
            lines.append(
                f"{NO_STEP} {method.name} had no time for a step on {_some(dict.fromkeys(idle))}: "
                "what is shown is where its search began; --time gives it more"
            )
    here = [each.name for each in found.instances if each.reference_source == BEST_HERE]
    if here:
        lines.append(
            f"no best known {found.problem.word}: gaps on {_some(here)} are to {BEST_HERE}"
        )
    for method in found.methods:
        over = [each.instance.name for each in found.attempts
                if each.method is method and late(each, found.seconds)]  # fmt: skip
        if over:
            why = "" if "seconds" in method.takes else ": nothing limits its time"
            once = list(dict.fromkeys(over))
            lines.append(
                f"{method.name} took longer than {found.seconds:g} s on {_some(once)}{why}"
            )
    below = {
        each.name
        for each in found.instances
        for other in found.attempts
        if other.instance.name == each.name and (found.gap(each, other.found.cost) or 0) < -1e-6
    }
    if below:
        fixed = any(map(FIXED_FLEET.fullmatch, below))
        why = (
            "recorded optima of the sets A, B and P are for as many routes as the name says, and "
            "the fleet is free here" if fixed else "the reference is the best known, not an optimum"
        )  # fmt: skip
        lines.append(f"negative gaps on {_some(sorted(below))}: {why}")
    if found.workers > 1:
        alone = [each.name for each in found.methods
                 if each.seeded and not each.missing and "workers" not in each.takes]  # fmt: skip
        if alone:
            remark = "one thread, so one run on each core with another seed; the best counts"
            lines.append(f"{', '.join(alone)}: {remark}")
    same = [each.name for each in found.methods if not each.seeded and not each.missing]
    if same and (found.workers > 1 or found.seeds > 1):
        lines.append(f"{', '.join(same)}: nothing is drawn at random, so one run on one core")
    return lines


def searches(found: Comparison) -> list[str]:
    """How pairs search, a line each, where it is not alike."""
    terms = {
        each.name: {
            "acceptance": " and ".join(found.problem.acceptances),
            "start": default_start(found.problem),
        }
        | {n: current(n, each.solve.terms[n]) for n in TERMS if n in each.solve.terms}
        for each in found.methods
        if isinstance(each.solve, PairSearch)
    }
    unlike = [n for n in TERMS if len({one.get(n) for one in terms.values()}) > 1]
    return [
        f"{name} searches with {', '.join(f'{n} {one[n]}' for n in unlike)}"
        for name, one in terms.items()
        if unlike
    ]


def show_comparison(found: Comparison, out: Console) -> None:
    """Print the tables and what they leave out."""
    for shown in (by_instance(found), by_method(found)):
        table = Table(box=None, pad_edge=False)
        for k, name in enumerate(shown.columns):
            table.add_column(name, justify="left" if k < shown.left else "right", no_wrap=True)
        for row in shown.rows:
            table.add_row(*map(_plain, row))
        out.print(table)
        out.print()
    for line in (heading(found), *notes(found)):
        out.print(_plain(line), soft_wrap=True)


def markdown(found: Comparison) -> str:
    """The tables and what they leave out as Markdown."""
    parts = [heading(found)]
    for shown in (by_method(found), by_instance(found)):
        sides = ["---" if k < shown.left else "---:" for k in range(len(shown.columns))]
        lines = [shown.columns, sides, *shown.rows]
        parts.append("\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines))
    parts.append("\n".join(f"- {_plain(line)}" for line in notes(found)))
    return "\n\n".join(filter(None, parts)) + "\n"


def _some(found: Iterable[str]) -> str:
    names = [*found]
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more


def _plain(text: str) -> str:
    """On one line, without control characters."""
    return "".join(each if each.isprintable() else " " for each in text)


def _cell(text: str) -> str:
    return _plain(text).replace("\\", "\\\\").replace("|", "\\|")


# --- the folder -----------------------------------------------------------------------------------


class Folder:
    """Where a comparison is written: a solution of each method and instance, tables, curves.

    Solution files are those of `spo solve`: a better one that is there stays. Tables are replaced
    if `spo compare` wrote those that are there. force: overwrites all of them.

    Raises InputError, before anything is made, for what cannot or must not be overwritten, and for
    a picture whose suffix is none.
    """

    def __init__(
        self,
        path: str | Path,
        problem: Problem,
        instances: Sequence[Instance],
        methods: Sequence[Method],
        *,
        picture: str | Path | None = None,
        force: bool = False,
    ):
        self._problem, self.path = problem, Path(path)
        self.picture = self.path / "curves.svg" if picture is None else Path(picture)
        if "\0" in f"{path}{picture or ''}":
            raise InputError(f"{str(path)!r} is not the name of a folder")
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{path} is a file: give the name of a folder")
        if self.picture.suffix.lower() not in SUFFIXES:
            raise InputError(f"{self.picture}: a picture ends in {', '.join(SUFFIXES)}")
        if picture is not None and not self.picture.parent.is_dir():
            raise InputError(f"{picture} cannot be written: there is no folder for it")
        if not force:
            self._require_ours()
        names = labels(instances)
        kinds = file_names([each.name for each in methods])
        self._outputs = {
            (name, method.name): Outputs(
                problem,
                instance,
                self.path / f"{stem}.{kind}{problem.solution_suffix}",
                force=force,
            )
            for instance, name, stem in zip(instances, names, file_names(names), strict=True)
            for method, kind in zip(methods, kinds, strict=True)
            if not method.missing
        }
        self._best: dict[tuple[str, str], float] = {}
        self.lines: list[str] = []

    def _require_ours(self) -> None:
        own = self.path / "table.json"
        ours = own.is_file() and own.read_bytes()[:40].startswith(f'{{"made_by": "{MARK}'.encode())
        for each in (*(self.path / name for name in TABLES), self.picture):
            if each.exists() and not (ours and each.parent == self.path):
                raise InputError(
                    f"{each} is there and spo compare did not write it: choose another --out or "
                    "--plot, or add --force to overwrite it"
                )

    def make(self) -> None:
        """Make the folder. Raises InputError."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {self.path}: {error.strerror}") from None

    def keep(self, attempt: Attempt) -> None:
        """Write a solution, if it is the best of its method so far."""
        key = attempt.instance.name, attempt.method.name
        paid = self._problem.turned(attempt.found.cost)
        if attempt.ok and paid < self._best.get(key, math.inf):
            self._best[key] = paid
            written = self._outputs[key].write(attempt.found.solution, attempt.found.cost)
            self.lines += [line for line in written if line.startswith("kept:")]

    def write(self, found: Comparison) -> list[str]:
        """Write the tables and the picture; a line about each file and about what was kept.

        Nothing, where nothing is finished: tables of an earlier comparison stay.
        """
        if not found.attempts:
            return [f"nothing is finished, so nothing is written to {self.path}"]
        write_atomically(self.path / "table.md", markdown(found))
        write_atomically(self.path / "table.csv", csv_text(COLUMNS, self._rows(found)))
        write_atomically(self.path / "table.json", self._json(found))
        write_atomically(self.path / "curves.csv", csv_text(METHOD_COLUMNS, points(found)))
        lines = [*self.lines, f"solutions and tables: {self.path}"]
        if plot_curves(found, self.picture):
            lines.append(f"picture: {self.picture}")
        return lines

    def _rows(self, found: Comparison) -> Iterable[tuple[Any, ...]]:
        for each in found.attempts:
            instance = found.instance_of(each)
            key = instance.name, each.method.name
            result = each.found
            yield (
                instance.name, instance.size, instance.reference, instance.reference_source,
                each.method.name, each.seed, result.status, _known(result.cost),
                found.gap(instance, result.cost), _known(result.seconds),
                _known(result.cpu_seconds),
                each.cores, self._outputs[key].solution.name if each.ok else None, result.reason,
                result.steps,
            )  # fmt: skip

    def _json(self, found: Comparison) -> str:
        summaries = []
        for method in found.ranked():
            summary = found.summary(method)
            summaries.append(
                {
                    "method": method.name,
                    "instances": summary.with_gap,
                    "gap": summary.mean_gap,
                    "interval": summary.gap_interval,
                    "failed": summary.failed,
                    "seconds": summary.mean_seconds,
                    "missing": method.missing,
                }
            )
        record = {
            "made_by": f"{MARK} {__version__}",
            "problem": found.problem.name,
            **found.problem.sense,
            "seconds": found.seconds,
            "workers": found.workers,
            "seeds": found.seeds,
            "stopped": found.stop is not None,
            "versions": _versions(),
            "summary": summaries,
            "attempts": [dict(zip(COLUMNS, row, strict=True)) for row in self._rows(found)],
            "notes": notes(found),
        }
        return json.dumps(record, allow_nan=False) + "\n"


def file_names(names: Sequence[str]) -> list[str]:
    """Names for files: of letters, digits, dots, lines; short, not hidden, and each only once."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")
        stem = plain.encode()[:LONGEST].decode(errors="ignore").strip("-.") or "unnamed"
        made, count = stem, 1
        while made.casefold() in map(str.casefold, found):
            count += 1
            made = f"{stem}-{count}"
        found.append(made)
    return found


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _versions() -> dict[str, str]:
    found = {}
    for name in SOLVERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
