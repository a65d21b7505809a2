"""What the paper lacks: gap against evaluations, and gap against time, across methods.

    python experiments/efficiency.py --problem tsp --budget smoke
    python experiments/efficiency.py --problem cvrp --budget small --group uniform-100

Two questions, a figure each. What does discovery cost? After every round a run has a pair with the
highest J so far; its gap on held-out instances stands over the candidate pairs that were evaluated,
and over the wall-clock seconds that the rounds took. What does a solution cost? Every method of the
main table, over the CPU seconds of a rollout; a construction or a local search is a point.

Written to OUT: efficiency-PROBLEM-discovery and -search, each as .csv, .png, .pdf and .txt, and
efficiency-PROBLEM.csv, .md and .tex, a table of gaps at equal numbers of evaluations. Runs and
rollouts are those of main_tables.py where both have them.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import budgets, commandline, compared, figures, tables
from common.budgets import Budget, Group, find_group
from common.contenders import CONTENDERS, OURS, Contender, asked
from common.discovered import runs_of
from common.evaluated import Evaluated, evaluate, evaluate_pair, load, mean_of_known
from common.tables import Column, Row, Table

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.intervals import TOLD
from spo_jax.envs.run.shown import shown_with
from spo_jax.errors import MissingExtra

PARTS = (0.25, 0.5, 1.0)  # of the evaluations that all runs have


@dataclass(frozen=True, eq=False)
class Discovery:
    """One discovery run, round by round. gaps: [K, I] percent on held-out instances, of the pair
    with the highest J so far; NaN while there is none. failed: [K] of its rollouts, which are in no
    mean. evaluations, answers, seconds, utilities: [K], so far.
    """

    who: Contender
    seed: int
    evaluations: np.ndarray
    answers: np.ndarray
    seconds: np.ndarray
    utilities: np.ndarray
    gaps: np.ndarray
    failed: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """[K] percent, NaN while there is no pair."""
        return mean_of_known(self.gaps)

    def at(self, evaluations: float) -> int | None:
        """The last round, from 0, that had evaluated no more than so many pairs; None without one,
        or where no pair was valid by then.
        """
        place = int(np.searchsorted(self.evaluations, evaluations, side="right")) - 1
        return place if place >= 0 and np.isfinite(self.utilities[place]) else None


@dataclass(frozen=True, eq=False)
class Search:
    """One method at test time. seconds, gaps: [K] CPU seconds of a rollout so far and mean gap, one
    point for what has no steps. rollouts, failed: how many, and those of them that are in no mean.
    """

    who: Contender
    steps: np.ndarray
    seconds: np.ndarray
    gaps: np.ndarray
    rollouts: int
    failed: int


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--problem", choices=budgets.PROBLEMS, default="tsp")
    parser.add_argument(
        "--group", default="uniform-50", metavar="KEY", help="instances that gaps are measured on"
    )
    parser.add_argument(
        "--contenders", metavar="NAME,...", help=f"only these of {', '.join(CONTENDERS)}"
    )
    parser.add_argument("--glns", metavar="FILE", help="operators of G-LNS's authors, at test time")
    commandline.add_arguments(parser)
    return commandline.script("efficiency", parser, run)


def run(args: argparse.Namespace) -> None:
    """Measure what is missing, then draw."""
    budget, out, workers = (
        commandline.chosen(args),
        commandline.folder(args),
        commandline.workers(args),
    )
    problem = get_problem(args.problem)
    group = find_group(args.group, budget.groups(args.problem, args.data))
    methods = asked(args.problem, args.contenders, glns=args.glns)
    instances = load(group, problem, own=args.references, effort=budget.effort)
    searches, left_out = [], []
    for who in methods:
        print(f"{who.label} on {group.key} ({len(instances)} instances)", flush=True)
        try:
            found = evaluate(who, problem, instances, budget, out, workers=workers)
        except MissingExtra as error:
            left_out.append(f"{who.label} is left out: {error}.")
            print(left_out[-1])
            continue
        searches.append(search_of(who, found))
    runs = [
        each
        for who in methods
        if who.discovered
        for each in discoveries(who, problem, instances, budget, out, workers)
    ]
    told = Told(args.problem, group, len(instances), budget, left_out)
    stem = out / f"efficiency-{args.problem}"
    if runs:
        tell_discovery(runs, told, stem)
    if searches:
        tell_search(searches, told, stem)


@dataclass(frozen=True)
class Told:
    """What every caption says."""

    problem: str
    group: Group
    instances: int
    budget: Budget
    left_out: Sequence[str]

    @property
    def where(self) -> str:
        name = Column(self.group.key, self.group.label, self.group.block).heading
        return (
            f"{self.problem.upper()}, {name}, {self.instances} held-out instances, "
            f"{self.budget.evaluation_seeds} rollouts of {self.budget.steps} steps on each"
        )

    @property
    def end(self) -> str:
        return " ".join([self.budget.told(self.problem), *self.left_out])


# --- numbers --------------------------------------------------------------------------------------


def discoveries(
    who: Contender,
    problem: Problem,
    instances: Sequence[Instance],
    budget: Budget,
    out: Path,
    workers: int,
) -> list[Discovery]:
    """The runs of a method with the held-out gaps of every pair that was ever the best."""
    found = []
    for seed, each in enumerate(runs_of(who, problem.name, budget, out, workers)):
        rounds = each.best_by_round
        gaps: dict[str, np.ndarray] = {}
        lost: dict[str, int] = {}
        for best in rounds:
            if best.pair is not None and best.pair.digest not in gaps:
                done = evaluate_pair(
                    best.pair, problem, instances,
                    steps=budget.steps, seeds=budget.evaluation_seeds, out=out, workers=workers,
                    who=f"{who.name}-seed{seed}", patience=budget.patience,
                    shown=shown_with(each.config.generator.state),
                    on_invalid=each.config.evaluation.on_invalid,
                )  # fmt: skip
                gaps[best.pair.digest] = done.by_instance
                lost[best.pair.digest] = done.failed
        none = np.full(len(instances), math.nan)
        found.append(
            Discovery(
                who,
                seed,
                evaluations=np.array([best.evaluations for best in rounds]),
                answers=np.array([best.answers for best in rounds]),
                seconds=np.array([best.seconds for best in rounds]),
                utilities=np.array([best.utility for best in rounds]),
                gaps=np.stack([none if b.pair is None else gaps[b.pair.digest] for b in rounds]),
                failed=np.array([0 if b.pair is None else lost[b.pair.digest] for b in rounds]),
            )
        )
    return found


def search_of(who: Contender, found: Sequence[Evaluated]) -> Search:
    """Mean gaps over the CPU seconds of a rollout, of which each step takes an equal part."""
    steps = found[0].best_cost.shape[-1] - 1
    at = figures.milestones(steps) if steps else np.zeros(1, np.int64)
    by_run = [mean_of_known(mean_of_known(one.curves[..., at], axis=1), axis=0) for one in found]
    whole = float(mean_of_known(np.array([mean_of_known(one.seconds.ravel()) for one in found])))
    parts = at / steps if steps else np.ones(1)
    return Search(
        who, at, whole * parts, mean_of_known(np.stack(by_run), axis=0),
        rollouts=sum(one.statuses.size for one in found), failed=sum(one.failed for one in found),
    )  # fmt: skip


def equal_budgets(runs: Sequence[Discovery], told: Told) -> Table:
    """Gaps at parts of the evaluations that even the shortest run has."""
    shared = min(int(each.evaluations[-1]) for each in runs)
    columns = [Column(f"{part:g}", f"{round(part * shared):,} pairs", "after") for part in PARTS]
    rows = []
    for who in dict.fromkeys(each.who for each in runs):
        own = [each for each in runs if each.who is who]
        cells = {f"{part:g}": mean_at(own, round(part * shared)) for part in PARTS}
        rows.append(Row(who.label, who.family, cells))
    counts = ", ".join(
        f"{each.who.label} {each.evaluations[-1]:,} ({each.seconds[-1]:,.0f} s)" for each in runs
    ).replace("nan s", "seconds unknown")
    return Table(
        "Held-out gap (%) of the pair with the highest J after equal numbers of evaluated pairs; "
        "lower is better.",
        columns,
        rows,
        [
            f"{told.where}. The pair is that of the last finished round within the number; empty "
            "where a run of the method had no pair by then.",
            f"Pairs in all, and wall-clock seconds of the rounds: {counts}.",
            f"Intervals are of 95% over the instances ({TOLD}), each for itself.",
            told.end,
        ],
    )


def mean_at(runs: Sequence[Discovery], evaluations: int) -> tables.Cell:
    """What the runs of a method had after so many pairs; empty unless all of them had a pair.

    A mean over those that had one would be of fewer runs than its neighbours, and of the luckier.
    """
    places = [each.at(evaluations) for each in runs]
    if None in places:
        return tables.Cell()
    had = [(each, place) for each, place in zip(runs, places, strict=True) if place is not None]
    gaps = mean_of_known(np.stack([each.gaps[place] for each, place in had]), axis=0)
    return tables.cell(gaps, sum(int(each.failed[place]) for each, place in had))


# --- what is told ---------------------------------------------------------------------------------


def tell_discovery(runs: Sequence[Discovery], told: Told, stem: Path) -> None:
    """The table at equal budgets and the figure of discovery with its numbers."""
    table = equal_budgets(runs, told)
    print("\n" + tables.markdown(table))
    paths = tables.write(table, stem)
    rows = []
    for each in runs:
        for k in range(len(each.evaluations)):
            gap = tables.cell(each.gaps[k])
            numbers = (int(each.evaluations[k]), int(each.answers[k]), float(each.seconds[k]))
            rows.append((each.who.label, each.seed, k + 1, *numbers, float(each.utilities[k]),
                         gap.mean, gap.low, gap.high, int(each.failed[k])))  # fmt: skip
    head = ("method", "seed", "round", "evaluations", "answers", "wall_seconds", "best_utility",
            "gap_percent", "low", "high", "failed")  # fmt: skip
    paths.append(figures.write_csv(Path(f"{stem}-discovery.csv"), head, rows))
    seeds = len({each.seed for each in runs})
    caption = (
        "What discovery costs: mean reference gap of the pair with the highest J so far, by the "
        "candidate pairs that were evaluated, cross-play included (left), and by the wall-clock "
        f"seconds of the rounds (right). {told.where}; the pair changes at the end of a round. "
        f"{'Thin: runs; thick: the last finished round of each, averaged. ' if seeds > 1 else ''}"
        "Wall-clock is of the machine as it was, with other jobs on it. J is of discovery's own "
        f"instances, so the held-out gap may rise; no pair is chosen by validation here. {told.end}"
    )
    if any(each.failed.any() for each in runs):
        caption += " Rollouts that failed are left out; the table of numbers counts them."
    with figures.look():
        figures.publish(draw_discovery(runs), Path(f"{stem}-discovery"), caption, paths)


def tell_search(searches: Sequence[Search], told: Told, stem: Path) -> None:
    """The figure of gaps over CPU seconds with its numbers."""
    rows = [
        (each.who.label, int(step), float(seconds), float(gap))
        for each in searches
        for step, seconds, gap in zip(each.steps, each.seconds, each.gaps, strict=True)
    ]
    head = ("method", "step", "cpu_seconds", "gap_percent")
    written = figures.write_csv(Path(f"{stem}-search.csv"), head, rows)
    caption = (
        "What a solution costs: mean best reference gap by the CPU seconds of a rollout. "
        f"{told.where}; steps are taken to cost the same each. Constructions and local searches "
        f"end by themselves and are points; OR-Tools ends by its time limit. {compared.ONCE} "
        f"{told.end}"
    )
    for each in (each for each in searches if each.failed):
        caption += (
            f" {each.who.label}: {each.failed} of {each.rollouts} rollouts failed and are left out."
        )
    if low := [each.who.label for each in searches if each.gaps[-1] <= 0]:
        caption += f" {figures.below(low)}"
    with figures.look():
        figures.publish(draw_search(searches), Path(f"{stem}-search"), caption, [written])


def staircase(runs: Sequence[Discovery], over: str) -> tuple[np.ndarray, np.ndarray]:
    """The mean of several runs' steps, where all have one: places and gaps, both [K]."""
    xs = [getattr(each, over) for each in runs]
    if any(np.isnan(x.astype(float)).any() for x in xs):
        return np.zeros(0), np.zeros(0)
    places = np.unique(np.concatenate(xs))
    places = places[(places >= max(x[0] for x in xs)) & (places <= min(x[-1] for x in xs))]
    values = [
        each.mean[np.searchsorted(x, places, side="right") - 1]
        for each, x in zip(runs, xs, strict=True)
    ]
    return places, np.mean(values, axis=0)


def draw_discovery(runs: Sequence[Discovery]) -> Any:
    """Gaps as staircases: over evaluations, and over seconds."""
    figure, panels = figures.new(figures.WIDTH, 2.6, 1, 2, sharey=True)
    panels[0, 0].set_ylabel("held-out gap (%)")
    for axes, over, label in zip(
        panels[0],
        ("evaluations", "seconds"),
        ("candidate pairs evaluated", "wall-clock seconds of the rounds"),
        strict=True,
    ):
        axes.set_xlabel(label)
        for who in dict.fromkeys(each.who for each in runs):
            own = [each for each in runs if each.who is who]
            look: dict[str, Any] = {"color": who.colour, "linestyle": who.line}
            top = 3 if who.family == OURS else 2
            for each in own if len(own) > 1 else ():
                x = getattr(each, over)
                axes.step(x, each.mean, where="post", alpha=0.3, linewidth=0.6, color=who.colour)
            x, y = staircase(own, over)
            width = min(who.width, 2.2)
            axes.step(x, y, where="post", linewidth=width, zorder=top, **look, label=who.label)
            axes.plot(x[-1:], y[-1:], marker=who.marker, markersize=4, zorder=top, color=who.colour)
        figures.plain_axis(axes.xaxis, 5)
        axes.set_xlim(left=0)
    figures.plain_axis(panels[0, 0].yaxis, 6)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6))
    return figure


def draw_search(searches: Sequence[Search]) -> Any:
    """Curves of what searches, points of what does not, both axes logarithmic."""
    figure, panels = figures.new(figures.COLUMN + 0.6, 2.9)
    axes = panels[0, 0]
    figures.log_axis(axes, "x", steps=(1,))
    figures.log_axis(axes, "y")
    for each in searches:
        who, top = each.who, 3 if each.who.family == OURS else 2
        gaps = figures.above_zero(each.gaps)
        if len(each.gaps) > 1:
            axes.plot(each.seconds, gaps, color=who.colour, linestyle=who.line,
                      linewidth=who.width, zorder=top, label=who.label)  # fmt: skip
        axes.plot(each.seconds[-1:], gaps[-1:], marker=who.marker, markersize=5, zorder=top + 1,
                  color=who.colour, linestyle="none",
                  label=who.label if len(each.gaps) == 1 else None)  # fmt: skip
    axes.set_xlabel("CPU seconds of a rollout")
    axes.set_ylabel("mean best gap (%)")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    return figure


if __name__ == "__main__":
    sys.exit(main())
