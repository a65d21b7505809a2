"""What the paper lacks: gap against evaluations, and gap against time, across methods.

    python experiments/efficiency.py --problem tsp --budget smoke
    python experiments/efficiency.py --problem cvrp --group uniform-100

What does discovery cost? The held-out gap of the pair with the highest J so far, by the candidate
pairs evaluated and by the wall-clock seconds of the rounds. What does a solution cost? The gap of
every method by the CPU seconds of a rollout; a construction or a local search is a point.

Writes OUT/efficiency-PROBLEM-discovery and -search, each as .csv, .png, .pdf and .txt, and a table
of gaps at equal numbers of evaluations, OUT/efficiency-PROBLEM.csv, .md and .tex. Runs and rollouts
are those of main_tables.py where both have them.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from common import cli, compared, contenders, figures, tables
from common.budgets import Group
from common.cli import Context
from common.contenders import Contender
from common.evaluated import Evaluated, evaluate_pair, load_group, mean_of_known, milestones
from common.tables import Table
from spo_jax.envs.problem import Instance
from spo_jax.runs.run import Run

PARTS = (0.25, 0.5, 1.0)  # of the evaluations that all runs have


@dataclass(frozen=True, eq=False)
class Discovery:
    """One discovery run, round by round. gaps: [K, I] percent on held-out instances, of the pair
    with the highest J so far; NaN while there is none. failed: [K] of its rollouts, which are in no
    mean. evaluations, seconds: [K], so far.
    """

    who: Contender
    seed: int
    evaluations: np.ndarray
    seconds: np.ndarray
    gaps: np.ndarray
    failed: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """[K] percent, NaN while there is no pair."""
        return mean_of_known(self.gaps)


@dataclass(frozen=True, eq=False)
class Search:
    """One method. seconds, gaps: [K] CPU seconds of a rollout so far and mean gap; K = 1 for what
    has no steps. failed: rollouts that are in no mean.
    """

    who: Contender
    steps: np.ndarray
    seconds: np.ndarray
    gaps: np.ndarray
    failed: int


def run(args: argparse.Namespace) -> None:
    context, methods = cli.context(args), contenders.asked(args)
    instances = load_group(context, args.group)
    measured = compared.measure(methods, {args.group: instances}, context)
    searches = [search_of(m.contender, m.results[args.group]) for m in measured if m.results]
    runs = [
        discovery(m.contender, each, context, instances) for m in measured for each in m.runs
    ]  # fmt: skip
    where = f"{args.problem} {args.group}, {len(instances)} held-out instances. {context.summary}"
    stem = f"{context.out}/efficiency-{args.problem}"
    if runs:
        tables.write(equal_budgets(runs, where), stem)
        caption = (
            "What discovery costs: mean gap of the pair with the highest J so far, by candidate "
            "pairs evaluated, cross-play included (left), and by wall-clock seconds of the rounds "
            f"on the machine as it was (right). {where}"
        )
        figures.publish(draw_discovery(runs), f"{stem}-discovery", caption, discovery_rows(runs))
    if searches:
        failed = [f" {s.who.label}: {s.failed} failed rollouts." for s in searches if s.failed]
        caption = (
            "What a solution costs: mean best gap by CPU seconds of a rollout, each step with an "
            f"equal part of them. {where}{''.join(failed)}"
        )
        rows = [
            (s.who.label, *values)
            for s in searches
            for values in zip(s.steps, s.seconds, s.gaps, strict=True)
        ]
        columns = ("method", "step", "cpu_seconds", "gap_percent")
        figures.publish(draw_search(searches), f"{stem}-search", caption, rows, columns)


def discovery(
    who: Contender, run: Run, context: Context, instances: Sequence[Instance]
) -> Discovery:
    """A run with the held-out gaps of every pair that was ever the best."""
    best = run.best_by_round
    found: dict[str, Evaluated] = {}
    for pair in (each.pair for each in best if each.pair):
        if pair.digest not in found:
            found[pair.digest] = evaluate_pair(pair, run.config, context, instances)
    none = np.full(len(instances), math.nan)
    return Discovery(
        who, run.config.seed, best.column("evaluations"), best.column("seconds"),
        np.stack([found[b.pair.digest].by_instance if b.pair else none for b in best]),
        np.array([found[b.pair.digest].failed if b.pair else 0 for b in best]),
    )  # fmt: skip


def search_of(who: Contender, found: Sequence[Evaluated]) -> Search:
    """Mean gaps over the CPU seconds of a rollout, of which each step takes an equal part."""
    steps = found[0].best_cost.shape[-1] - 1
    at = milestones(steps)
    by_run = [mean_of_known(mean_of_known(one.curves[..., at], axis=1), axis=0) for one in found]
    whole = float(np.nanmean([mean_of_known(one.seconds.ravel()) for one in found]))
    parts = at / steps if steps else np.ones(1)
    gaps = mean_of_known(np.stack(by_run), axis=0)
    return Search(who, at, whole * parts, gaps, sum(one.failed for one in found))


def by_method(runs: Sequence[Discovery]) -> Mapping[Contender, list[Discovery]]:
    found: dict[Contender, list[Discovery]] = {}
    for each in runs:
        found.setdefault(each.who, []).append(each)
    return found


def equal_budgets(runs: Sequence[Discovery], where: str) -> Table:
    """Gaps at parts of the evaluations that even the shortest run has."""
    shared = min(int(each.evaluations[-1]) for each in runs)
    columns = [Group(f"{p:g}", f"{round(p * shared):,} pairs", "after") for p in PARTS]
    cells = [
        tables.cell(who.label, who.family, f"{p:g}", *gaps_after(own, round(p * shared)))
        for who, own in by_method(runs).items()
        for p in PARTS
    ]
    counts = [f"{r.who.label} {r.evaluations[-1]:,} ({r.seconds[-1]:,.0f} s)" for r in runs]
    return Table(
        "Held-out gap (%) of the pair with the highest J after equal numbers of evaluated pairs; "
        "lower is better.",
        columns,
        pd.DataFrame(cells, columns=tables.CELL),
        [where, f"Pairs in all, and wall-clock seconds: {', '.join(counts)}."],
    )


def gaps_after(runs: Sequence[Discovery], evaluations: int) -> tuple[np.ndarray, int]:
    """[I] the gaps of a method's runs after so many pairs, and failed rollouts; no gaps unless all
    runs had a pair by then: a mean over fewer runs would be of the luckier ones.
    """
    places = [np.searchsorted(r.evaluations, evaluations, side="right") - 1 for r in runs]
    at = [(run, k) for run, k in zip(runs, places, strict=True)]
    if any(k < 0 or not np.isfinite(run.gaps[k]).any() for run, k in at):
        return np.zeros(0), 0
    gaps = mean_of_known(np.stack([run.gaps[k] for run, k in at]), axis=0)
    return gaps, sum(int(run.failed[k]) for run, k in at)


def discovery_rows(runs: Sequence[Discovery]) -> list[dict[str, Any]]:
    rows = []
    for each in runs:
        for k in range(len(each.evaluations)):
            _, gap, low, high = tables.interval(each.gaps[k])
            rows.append({
                "method": each.who.label, "seed": each.seed, "round": k + 1,
                "evaluations": each.evaluations[k], "wall_seconds": each.seconds[k],
                "gap_percent": gap, "low": low, "high": high, "failed": each.failed[k],
            })  # fmt: skip
    return rows


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
    labels = {"evaluations": "candidate pairs evaluated", "seconds": "wall-clock seconds"}
    for axes, (over, label) in zip(panels[0], labels.items(), strict=True):
        axes.set_xlabel(label)
        for who, own in by_method(runs).items():
            for each in own if len(own) > 1 else ():
                axes.step(getattr(each, over), each.mean, where="post", alpha=0.3, linewidth=0.6,
                          color=who.colour)  # fmt: skip
            x, y = staircase(own, over)
            axes.step(x, y, where="post", **figures.look(who), label=who.label)
            axes.plot(x[-1:], y[-1:], marker=who.marker, markersize=4, color=who.colour)
        axes.set_xlim(left=0)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 6))
    return figure


def draw_search(searches: Sequence[Search]) -> Any:
    """Curves of what searches, points of what does not, both axes logarithmic."""
    figure, panels = figures.new(figures.COLUMN + 0.6, 2.9)
    axes = panels[0, 0]
    figures.log_axis(axes, "x", steps=(1,))
    figures.log_axis(axes, "y")
    for each in searches:
        who, gaps = each.who, figures.above_zero(each.gaps)
        axes.plot(each.seconds, gaps, **figures.look(who), label=who.label, marker=who.marker,
                  markersize=5, markevery=[-1])  # fmt: skip
    axes.set(xlabel="CPU seconds of a rollout", ylabel="mean best gap (%)")
    figure.legend(loc="outside right upper")
    return figure


def main() -> int:
    parser = cli.parser(__doc__, group="uniform-50")
    contenders.add_arguments(parser)
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
