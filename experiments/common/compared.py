"""Contenders on the columns of a problem: what the tables are made of, and their small print.

`measure` discovers what has to be discovered and evaluates it, contender by contender, so that a
script that was stopped has whole rows. `report` writes a table (CSV, Markdown, LaTeX), the tests
between its rows, and every run and instance behind it: STEM-runs.csv and STEM-instances.csv.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from common import evaluated, significance, tables
from common.budgets import Budget, Group
from common.contenders import Contender
from common.discovered import runs_of
from common.evaluated import Evaluated, mean_of_known
from common.tables import Column, Row, Table

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.report.intervals import TOLD
from spo_jax.envs.report.reporting import Meter
from spo_jax.envs.textfiles import write_atomically
from spo_jax.errors import MissingExtra
from spo_jax.search.runs.run import Run

FREE_FLEET = "a free fleet reaches"  # what a reference source says of a cheaper solution


@dataclass(eq=False)
class Measured:
    """One contender. results: by column key, one a discovery run. missing: why there are none."""

    contender: Contender
    runs: Sequence[Run] = ()
    results: dict[str, list[Evaluated]] = field(default_factory=dict)
    missing: str = ""

    def gaps(self, key: str) -> np.ndarray:
        """[I] percent, an instance's mean over discovery runs of its mean over rollouts."""
        return mean_of_known(np.stack([each.by_instance for each in self.results[key]]), axis=0)

    def failed(self, key: str) -> int:
        """Rollouts of a column that gave no solution."""
        return sum(each.failed for each in self.results[key])


@dataclass(frozen=True, eq=False)
class Ground:
    """What contenders are compared on. loaded: instances by column key, of those that have any."""

    problem: Problem
    groups: Sequence[Group]
    loaded: Mapping[str, Sequence[Instance]]


def ground(
    problem: Problem, groups: Sequence[Group], effort: str, references: str | None = None
) -> Ground:
    """The instances of all groups with their references; a group without files is left empty.

    effort: of the solvers of references. references: a file of better ones.
    """
    with Meter(sys.stderr, sys.stdout) as meter:
        loaded = {
            group.key: evaluated.load(group, problem, own=references, effort=effort, progress=meter)
            for group in groups
            if group.specs
        }
    return Ground(problem, groups, loaded)


def measure(
    contenders: Sequence[Contender],
    on: Ground,
    budget: Budget,
    out: Path,
    *,
    workers: int = 1,
) -> list[Measured]:
    """Every contender on every column. One whose extra is not installed is `missing`, and said."""
    found = []
    for contender in contenders:
        done = Measured(contender)
        found.append(done)
        try:
            if contender.discovered:
                done.runs = runs_of(contender, on.problem.name, budget, out, workers)
            with Meter(sys.stderr, sys.stdout) as meter:  # discovery has a display of its own
                for key, instances in on.loaded.items():
                    done.results[key] = evaluated.evaluate(
                        contender, on.problem, instances, budget, out,
                        workers=workers, progress=meter,
                    )  # fmt: skip
        except MissingExtra as error:
            done.missing, done.results = str(error), {}
            print(f"{contender.label} is left out: {error}")
    return found


# --- the table ------------------------------------------------------------------------------------


def table(
    caption: str, measured: Sequence[Measured], on: Ground, notes: Sequence[str], corner: str
) -> Table:
    """Rows in the order of the contenders; one that is missing has empty cells."""
    rows = []
    for each in measured:
        cells = {key: tables.cell(each.gaps(key), each.failed(key)) for key in each.results}
        rows.append(Row(each.contender.label, each.contender.family, cells))
    return Table(caption, tables.columns_of(on.groups), rows, notes, corner)


def notes(measured: Sequence[Measured], on: Ground, budget: Budget) -> list[str]:
    """The small print that every table needs: instances, references, intervals, methods."""
    found = [budget.told(on.problem.name), _instances(on, budget), _references(on), INTERVALS]
    found.append(_empty(on))
    found += [f"{m.contender.label} is missing: {m.missing}." for m in measured if m.missing]
    found += [_writer(measured), _alike(measured), _runs(measured), *_methods(measured)]
    return [note for note in found if note]


ONCE = "What draws nothing at random ran once an instance, without steps."
INTERVALS = (
    "Gaps are means over instances of an instance's mean over discovery runs and evaluation seeds; "
    f"intervals are of 95% over the instances ({TOLD}), each for itself, and say nothing of other "
    f"discovery runs. {ONCE}"
)


def _instances(on: Ground, budget: Budget) -> str:
    told = []
    for group in (g for g in on.groups if g.key in on.loaded):
        count = len(on.loaded[group.key])
        of = f" of {group.total} files" if not group.key.startswith("uniform") else ""
        told.append(f"{_name(group)}: {count}{of}")
    largest = f", none above {budget.largest}" if budget.largest is not None else ""
    return f"Instances: {', '.join(told)}{largest}."


def _empty(on: Ground) -> str:
    """Columns without instances, by the reason."""
    reasons: dict[str, list[str]] = {}
    for group in on.groups:
        if not group.specs:
            reasons.setdefault(group.missing, []).append(_name(group))
    told = [f"{', '.join(names)} ({why})" for why, names in reasons.items()]
    return f"Empty: {'; '.join(told)}." if told else ""


def _references(on: Ground) -> str:
    every = [(key, instance) for key, instances in on.loaded.items() for instance in instances]
    uniform = [i for key, i in every if key.startswith("uniform") and i.reference is not None]
    files = [i for key, i in every if not key.startswith("uniform") and i.reference is not None]
    told = []
    if uniform:
        sources = "; ".join(sorted({instance.reference_source for instance in uniform}))
        proven = sum(instance.certified for instance in uniform)
        told.append(
            f"References of uniform instances: {sources}. {proven} of {len(uniform)} are proven "
            "optimal."
        )
    if files:
        told.append("References of files: their optimal or best known values.")
    without = [i for _, i in every if i.reference is None]
    if without:
        names = ", ".join(f"{i.name} ({i.reference_source})" for i in without)
        told.append(f"No reference, so in no mean: {names}.")
    cheaper = [i.name for _, i in every if FREE_FLEET in i.reference_source]
    if cheaper:
        told.append(
            "The optima of A, B and P are for exactly the k vehicles of the name, and the fleet is "
            f"free here as in the paper, so gaps can be negative: {', '.join(cheaper)} have known "
            "cheaper solutions."
        )
    return " ".join(told)


def _writer(measured: Sequence[Measured]) -> str:
    """Who wrote the programs, and how a run's pair was chosen."""
    runs = [run for each in measured for run in each.runs]
    if not runs:
        return ""
    writers = {
        run.config.generator.model if run.config.generator.name != "grammar" else "the grammar"
        for run in runs
    }
    named = {"embedded": "the model that ships"}
    told = " and ".join(sorted(named.get(Path(w).name, Path(w).name) for w in writers))
    pairs = {each.contender.label: [run.evaluated for run in each.runs] for each in measured}
    counts = "; ".join(f"{k} {_spread(v, '{:,}')}" for k, v in pairs.items() if v)
    return (
        f"Programs were written by {told}; a run's pair is chosen by {_rules(measured)}. Pairs "
        f"evaluated in discovery: {counts}."
    )


def _rules(measured: Sequence[Measured]) -> str:
    """The rules by which a run's pair is chosen, and whose each is where there are several."""
    whose: dict[str, list[str]] = {}
    for each in measured:
        for rule in dict.fromkeys(run.config.search.select for run in each.runs):
            whose.setdefault(rule, []).append(each.contender.label)
    if len(whose) == 1:
        return next(iter(whose))
    return " and by ".join(f"{rule} ({', '.join(whose[rule])})" for rule in sorted(whose))


def _methods(measured: Sequence[Measured]) -> list[str]:
    """What each method is here, in its own words."""
    told = []
    for each in measured:
        label = each.contender.label
        variants = {str(run.manifest["variant"]) for run in each.runs if "variant" in run.manifest}
        words = "; ".join(word for word in (*sorted(variants), each.contender.note) if word)
        if words:
            named = words.lower().startswith(label.lower())
            told.append(f"{words[0].upper()}{words[1:]}." if named else f"{label}: {words}.")
    return told


def _alike(measured: Sequence[Measured]) -> str:
    """Contenders whose runs chose the same pairs: the same seed has the same first answers."""
    known: dict[tuple[str, ...], list[str]] = {}
    for each in measured:
        chosen = tuple(run.best.pair.digest for run in each.runs if run.best is not None)
        if chosen:
            known.setdefault(chosen, []).append(each.contender.label)
    told = [" and ".join(labels) for labels in known.values() if len(labels) > 1]
    return f"The same pair was found by {'; by '.join(told)}." if told else ""


def _runs(measured: Sequence[Measured]) -> str:
    """How far the runs of a method are apart, where there are several."""
    told = []
    for each in measured:
        if len(each.runs) > 1:
            spans = [
                _spread([float(mean_of_known(one.by_instance)) for one in results], "{:.3f}")
                for results in each.results.values()
            ]
            told.append(f"{each.contender.label} {', '.join(spans)}")
    return f"By discovery run, lowest to highest: {'; '.join(told)}." if told else ""


def _spread(values: Sequence[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def _name(group: Group) -> str:
    return Column(group.key, group.label, group.block).heading


# --- what is written ------------------------------------------------------------------------------


def report(shown: Table, measured: Sequence[Measured], stem: Path, *, base: str) -> list[Path]:
    """Write and print a table and the tests against the row `base`; the files.

    STEM.csv, .md, .tex; STEM-significance.csv, .md, where there is something to test;
    STEM-runs.csv; STEM-instances.csv.
    """
    present = [each for each in measured if each.results]
    gaps = {m.contender.label: {key: m.gaps(key) for key in m.results} for m in present}
    failed = {m.contender.label: {key: m.failed(key) for key in m.results} for m in present}
    paths = tables.write(shown, stem)
    print("\n" + tables.markdown(shown))
    if base in gaps and len(gaps) > 1:
        tests = significance.against(base, gaps, shown.columns, failed)
        paths += significance.write(tests, base, shown.columns, f"{stem}-significance")
        print(significance.markdown(tests, base, shown.columns))
    else:
        significance.remove(f"{stem}-significance")  # those of another table
    for what, lines in (("runs", _run_lines(present)), ("instances", _instance_lines(present))):
        paths.append(Path(f"{stem}-{what}.csv"))
        write_atomically(paths[-1], lines)
    print("written: " + ", ".join(str(path) for path in paths))
    return paths


def _run_lines(measured: Sequence[Measured]) -> str:
    head = ("method", "run", "column", "mean_gap", "instances", "rollouts", "failed",
            "first_failure", "cpu_seconds_a_rollout")  # fmt: skip
    rows = []
    for each in measured:
        for key, results in each.results.items():
            for one in results:
                known = one.by_instance
                mean = float(mean_of_known(known))
                count = int(np.isfinite(known).sum())
                seconds = float(mean_of_known(one.seconds.ravel()))
                rows.append((each.contender.label, one.who, key, mean, count, one.statuses.size,
                             one.failed, one.failure, seconds))  # fmt: skip
    return tables.lines_of(head, rows)


def _instance_lines(measured: Sequence[Measured]) -> str:
    head = ("method", "run", "column", "instance", "size", "reference", "mean_cost", "mean_gap",
            "failed", "cpu_seconds")  # fmt: skip
    rows = []
    for each in measured:
        for key, results in each.results.items():
            for one in results:
                costs = mean_of_known(one.best_cost[..., -1])
                gaps, seconds = one.by_instance, mean_of_known(one.seconds)
                for i, name in enumerate(one.names):
                    failed = int((one.statuses[i] != 0).sum())
                    numbers = (one.references[i], costs[i], gaps[i])
                    told = [float(number) for number in numbers]
                    rows.append((each.contender.label, one.who, key, name, int(one.sizes[i]),
                                 *told, failed, float(seconds[i])))  # fmt: skip
    return tables.lines_of(head, rows)


def comparability(problem: str, measured: Sequence[Measured]) -> str:
    """What may be compared with the paper's rows, and what may not."""
    alns = "ALNS and OR-Tools" if problem == "cvrp" else "ALNS"
    solver = "one PyVRP run by time" if problem == "cvrp" else "Concorde"
    library = "CVRPLIB" if problem == "cvrp" else "TSPLIB"
    writer = any(each.runs for each in measured)
    own = "its programs were written by Qwen3.5-9B, with up to 27,000 repairs a run; " * writer
    return (
        "Rows of the paper are its printed values. Comparable: the distribution and sizes of "
        "uniform instances, the steps, what a gap is, the constructions and local searches. Not to "
        f"the last digit: its uniform instances are others, with references from {solver}; it does "
        f"not say which {library} files or how many evaluation seeds it used. Not comparable: "
        f"{own}the settings of its {alns} are not given."
    )
