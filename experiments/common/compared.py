"""Contenders on the columns of a problem: what the tables are made of.

`measure` discovers and evaluates contender by contender, so a script that was stopped has whole
rows. `report` writes the table, the tests between its rows, and every instance of every run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from common import between, significance, tables
from common.cli import Context
from common.contenders import EQUAL_PAIRS, SPO, Contender
from common.evaluated import Evaluated, evaluate, load, mean_of_known
from common.runs import runs_of
from common.tables import Table
from spo_jax.envs.problem import Instance
from spo_jax.errors import MissingExtra
from spo_jax.peers import hsevo, mcts_ahd, reevo
from spo_jax.runs.run import Run

WITHOUT = (
    reevo.WITHOUT,
    mcts_ahd.WITHOUT,
    hsevo.WITHOUT,
)  # names of methods whose writer reads no prose

Ground = Mapping[str, Sequence[Instance]]  # instances by column key, of columns that have any


@dataclass(eq=False)
class Measured:
    """One contender. results: by column key, one per discovery run. missing: why there are none."""

    contender: Contender
    runs: Sequence[Run] = ()
    results: dict[str, list[Evaluated]] = field(default_factory=dict)
    missing: str = ""

    @property
    def label(self) -> str:
        return self.contender.label

    def gaps(self, key: str) -> np.ndarray:
        """[I] percent, an instance's mean over discovery runs of its mean over rollouts."""
        return mean_of_known(np.stack([each.by_instance for each in self.results[key]]), axis=0)

    def by_run(self, key: str) -> np.ndarray | float:
        """[R] percent, each discovery run's mean over a column's instances; NaN where one lacks.

        A number for a method without discovery, which is the same for every seed.
        """
        means = [float(each.by_instance.mean()) for each in self.results[key]]
        return np.array(means) if self.contender.discovered else means[0]

    def failed(self, key: str) -> int:
        """Rollouts of a column that gave no solution."""
        return sum(each.failed for each in self.results[key])

    def note(self) -> str:
        """What the method is here, who wrote its programs, and how its pair was chosen."""
        if self.missing:
            return f"{self.label} is missing: {self.missing}."
        words = [str(run.manifest["variant"]) for run in self.runs if "variant" in run.manifest][:1]
        words += [self.contender.note] if self.contender.note else []
        if self.runs:
            config = self.runs[0].config
            grammar = config.generator.name == "grammar"
            pairs = ", ".join(f"{run.evaluated:,}" for run in self.runs)
            if "resets" in self.runs[0].metrics:
                counts = ", ".join(f"{np.nansum(run.metrics['resets']):.0f}" for run in self.runs)
                words.append(f"resets in each run: {counts}")
            words.append(f"programs by {'the grammar' if grammar else config.generator.model}")
            words.append(f"pair chosen by {config.search.select} of {pairs} evaluated")
        return f"{self.label}: {'; '.join(words)}." if words else ""


def ground(context: Context) -> dict[str, list[Instance]]:
    """The instances of all columns with their references; those without files are left out."""
    return {g.key: load(context, g.specs) for g in context.groups if g.specs}


def measure(contenders: Sequence[Contender], on: Ground, context: Context) -> list[Measured]:
    """Every contender on every column. One whose package is not installed is `missing`."""
    found = []
    for contender in contenders:
        done = Measured(contender)
        found.append(done)
        try:
            if contender.discovered:
                done.runs = runs_of(contender, context)
                done.contender = called(contender, done.runs)
            for key, instances in on.items():
                done.results[key] = evaluate(contender, context, instances)
        except MissingExtra as error:
            done.missing, done.results = str(error), {}
            print(f"{contender.label} is left out: {error}")
    return found


def called(contender: Contender, runs: Sequence[Run]) -> Contender:
    """A contender under the name that its method has there, which tells a lack of prose."""
    variants = [str(run.manifest.get("variant", "")) for run in runs]
    for name in WITHOUT:
        if any(variant.startswith(name) for variant in variants):
            whole = name.partition(" without ")[0]
            return replace(contender, label=contender.label.replace(whole, name))
    return contender


def table(caption: str, measured: Sequence[Measured], on: Ground, context: Context) -> Table:
    """Rows in the order of the contenders; one that is missing has empty cells."""
    cells = [
        tables.cell(
            each.label, each.contender.family, group.key,
            each.gaps(group.key) if group.key in each.results else (),
            each.failed(group.key) if group.key in each.results else 0,
        )
        for each in measured
        for group in context.groups
    ]  # fmt: skip
    frame = pd.DataFrame(cells, columns=tables.CELL)
    return Table(caption, context.groups, frame, notes(measured, on, context))


def notes(measured: Sequence[Measured], on: Ground, context: Context) -> list[str]:
    """The small print: budget, instances, references, methods, pairs that several methods chose."""
    counts = [f"{g.heading} {len(on[g.key])}" for g in context.groups if g.key in on]
    empty = [f"{g.heading} ({g.missing})" for g in context.groups if g.key not in on]
    every = [instance for instances in on.values() for instance in instances]
    unknown = [f"{i.name} ({i.reference_source})" for i in every if i.reference is None]
    sources = sorted({i.reference_source for i in every if i.name.startswith("uniform")})
    alike: dict[tuple[str, ...], list[str]] = {}
    for each in measured:
        chosen = tuple(run.best.pair.digest for run in each.runs if run.best is not None)
        alike.setdefault(chosen, []).append(each.label)
    same = [" and ".join(labels) for pairs, labels in alike.items() if pairs and len(labels) > 1]
    found = [
        context.summary,
        f"Instances: {', '.join(counts)}.",
        f"References: {'; '.join([*sources, 'best known values of files'])}; "
        f"{sum(i.certified for i in every)} of {len(every)} are certified.",
        "Gaps are means over instances; intervals are of 95% over instances. "
        "docs/research/methods_tsp.md says what may be compared with the paper.",
        f"Empty: {'; '.join(empty)}." if empty else "",
        f"No reference, so in no mean: {', '.join(unknown)}." if unknown else "",
        f"The same pair was chosen by {'; by '.join(same)}." if same else "",
        *(each.note() for each in measured),
    ]
    return [note for note in found if note]


def report(shown: Table, measured: Sequence[Measured], stem: str) -> None:
    """Write and print a table and the tests against SPO.

    STEM.csv, .md, .tex; STEM-significance.csv, .md, where there is something to test, and
    STEM-runs.csv, .md, where SPO has two runs or more; STEM-instances.csv. SPO's row of equal
    pairs, if there is one, has tests of its own, in STEM-equal-pairs-significance.csv and so on.
    """
    present = [each for each in measured if each.results]
    paths = tables.write(shown, stem)
    short = SPO.label + EQUAL_PAIRS
    for base, other, end in ((SPO.label, short, ""), (short, SPO.label, "-equal-pairs")):
        paths += _tests(base, [m for m in present if m.label != other], shown, stem + end)
    rows = [
        row
        for each in present
        for key, results in each.results.items()
        for one in results
        for row in instance_rows(each.label, key, one)
    ]
    paths.append(tables.write_csv(f"{stem}-instances.csv", rows))
    print("written: " + ", ".join(map(str, paths)))


def _tests(base: str, measured: Sequence[Measured], shown: Table, stem: str) -> list[Path]:
    """Write the tests against one row over instances and over runs; what there is to test."""
    for name in ("significance", "runs"):  # those of an earlier table
        for suffix in (".csv", ".md"):
            Path(f"{stem}-{name}{suffix}").unlink(missing_ok=True)
    gaps = {m.label: {key: m.gaps(key) for key in m.results} for m in measured}
    if base not in gaps or len(gaps) < 2:
        return []
    failed = {m.label: {key: m.failed(key) for key in m.results} for m in measured}
    tests = significance.against(base, gaps, shown.columns, failed)
    paths = significance.write(tests, shown.columns, f"{stem}-significance")
    by_run = {m.label: {key: m.by_run(key) for key in m.results} for m in measured}
    if max(map(np.size, by_run[base].values())) > 1:
        paths += between.write(base, by_run, shown.columns, f"{stem}-runs")
    return paths


def instance_rows(method: str, column: str, found: Evaluated) -> list[dict[str, object]]:
    """The instances of one run on one column."""
    costs, seconds = mean_of_known(found.best_cost[..., -1]), mean_of_known(found.seconds)
    return [
        {
            "method": method, "run": found.who, "column": column, "instance": each.name,
            "size": each.size, "reference": each.reference, "mean_cost": costs[i],
            "mean_gap": found.by_instance[i], "failed": int((found.statuses[i] != 0).sum()),
            "cpu_seconds": seconds[i], "first_failure": next(filter(None, found.reasons[i]), ""),
        }
        for i, each in enumerate(found.instances)
    ]  # fmt: skip


def with_paper(shown: Table, name: str, measured: Sequence[Measured]) -> Table:
    """The table with the paper's rows. Its G-LNS ran the released operators."""
    if any(each.contender.name == "g-lns-released" for each in measured):
        cells = shown.cells.replace({"row": {"G-LNS (released)": "G-LNS", "G-LNS": "G-LNS (ours)"}})
        shown = replace(shown, cells=cells)
    return tables.with_paper(shown, name, {reevo.WITHOUT: "ReEvo"})
