"""Figure 2 (b1): what a pair loses when the LNS state that it is shown is not the true one.

    python experiments/interventions.py --budget small
    python experiments/interventions.py --pair docs/pairs/tsp-standard.py --group uniform-100

Only the signal is changed (Appendix E): it is fixed at 0, 5 or 10; shuffled, a permutation of the
sequence that the same rollout saw unmodified; or inverted, 30 below ten and 0 from ten on.
Instances, starts and random streams stay the same, so differences are taken rollout by rollout: the
change in the final gap, in percentage points, as the mean over instances of their means over
rollouts, with a 95% interval over the instances. (The paper resamples instance-seed pairs, as if
rollouts of one instance were independent.) More than zero: the pair does worse without the true
state.

A program that does not read the state draws the same numbers whatever it is shown, and its
differences are exactly zero.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import figures
from common.budgets import PROBLEMS, Budget, Group, find_group
from common.commandline import add_arguments, chosen, folder, script, workers
from common.contenders import SPO
from common.evaluated import (
    Evaluated,
    evaluate_pair,
    load,
    mean_of_known,
    pairs_of,
    read_pair,
)

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.intervals import TOLD
from spo_jax.envs.report.reporting import Meter
from spo_jax.envs.run.shown import INVERTED, OBSERVED, Showing, fixed, given
from spo_jax.errors import InputError
from spo_jax.seeding import numpy_rng

FIXED = (0, 5, 10)


@dataclass(frozen=True, eq=False)
class Effect:
    """An intervention. differences: [I, S] percentage points, NaN where either rollout failed."""

    name: str
    differences: np.ndarray

    def interval(self) -> tuple[int, float, float, float]:
        """Instances with a difference, the mean of their means, and its interval over instances."""
        return figures.interval(mean_of_known(self.differences))

    @property
    def lost(self) -> int:
        """Differences that are not there, because either rollout failed."""
        return int((~np.isfinite(self.differences)).sum())


def main() -> int:
    parser = argparse.ArgumentParser(description="State interventions on one pair.")
    parser.add_argument("--problem", choices=PROBLEMS, default="tsp")
    parser.add_argument("--group", default="uniform-100", help="a column of the tables")
    parser.add_argument("--pair", metavar="PATH", help="a pair file or a run folder")
    add_arguments(parser)
    return script("interventions.py", parser, run)


def run(args: argparse.Namespace) -> None:
    budget, out, hands = chosen(args), folder(args), workers(args)
    problem = get_problem(args.problem)
    group = find_group(args.group, budget.groups(args.problem, args.data))
    if args.pair:
        name, (pair, settings) = Path(args.pair).stem, read_pair(args.pair, args.problem)
    else:
        name, pair, settings = pairs_of(SPO, args.problem, budget, out, hands)[0]
    if not settings.generator.state:
        raise InputError(f"{name} was discovered without the LNS state: there is none to change")
    with Meter(sys.stderr, sys.stdout) as meter:
        instances = load(group, problem, effort=budget.effort, own=args.references, progress=meter)
        figures.require_references(instances)

        def evaluated(what: str, shown: Showing) -> Evaluated:
            return evaluate_pair(
                pair, problem, instances, steps=budget.steps, seeds=budget.evaluation_seeds,
                out=out, workers=hands, who=f"{name}, {what},", shown=shown,
                on_invalid=settings.evaluation.on_invalid, patience=budget.patience, progress=meter,
            )  # fmt: skip

        base = evaluated("unmodified", OBSERVED)
        effects = [
            Effect(what, evaluated(what, shown).gaps - base.gaps)
            for what, shown in interventions(instances, base.state).items()
        ]
    stem = out / f"interventions-{args.problem}-{group.key}-{name}"
    tables = written(effects, base, stem)
    with figures.look():
        text = caption(effects, base, name, group, budget, args.problem)
        figures.publish(draw(effects), stem, text, tables)


# --- numbers --------------------------------------------------------------------------------------


def interventions(instances: Sequence[Instance], state: np.ndarray) -> Mapping[str, Showing]:
    """What is shown in each, in the order of Appendix E. state: [I, S, T], as it was observed.

    A rollout that failed unmodified has no sequence; it is shown zeros, and left out anyway.
    """
    shuffled = {
        (instance.digest, s): given(permuted(state[i, s], instance.digest, s))
        for i, instance in enumerate(instances)
        for s in range(state.shape[1])
    }
    found: dict[str, Showing] = {f"fixed {k}": fixed(k) for k in FIXED}
    return {**found, "shuffled": shuffled, "inverted": INVERTED}


def permuted(states: np.ndarray, digest: str, seed: int) -> list[int]:
    """A permutation of a rollout's states, its own for every instance and seed."""
    order = numpy_rng("shuffled states", digest, seed).permutation(len(states))
    return np.maximum(states, 0)[order].tolist()


def written(effects: Sequence[Effect], base: Evaluated, stem: Path) -> list[Path]:
    """The differences one by one, and their means."""
    rows = [
        (each.name, base.names[i], s, base.gaps[i, s], each.differences[i, s])
        for each in effects
        for i, s in np.ndindex(each.differences.shape)
    ]
    head = ("intervention", "instance", "seed", "unmodified_gap_percent", "difference_pp")
    return [
        figures.write_csv(Path(f"{stem}.csv"), head, rows),
        figures.write_csv(
            Path(f"{stem}-means.csv"),
            ("intervention", "instances", "mean_pp", "low", "high", "lost_rollouts"),
            [(each.name, *each.interval(), each.lost) for each in effects],
        ),
    ]


# --- the picture ----------------------------------------------------------------------------------


def draw(effects: Sequence[Effect]) -> Any:
    figure, panels = figures.new(figures.COLUMN, 2.4)
    axes = panels[0, 0]
    axes.axhline(0, color=figures.MUTED, linewidth=0.8, zorder=1.5)
    for k, each in enumerate(effects):
        _, mean, low, high = each.interval()
        values = each.differences[np.isfinite(each.differences)]
        aside = k + 0.36 * (numpy_rng("jitter", k).random(values.size) - 0.5)
        axes.scatter(aside, values, s=5, color="#93A1AD", linewidths=0, zorder=2)
        axes.bar(k, mean, width=0.62, color=SPO.colour, alpha=0.25, linewidth=0, zorder=1)
        axes.plot([k, k], [low, high], color=SPO.colour, linewidth=1.8, zorder=3)
        axes.plot(k, mean, "o", color=SPO.colour, markersize=4.5, zorder=4)
    names = [f"{each.name}\n{each.interval()[1]:+.2f}" for each in effects]
    axes.set_xticks(range(len(effects)), [name.replace("-", figures.MINUS) for name in names])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("increase of the final gap (pp)")
    figures.plain_axis(axes.yaxis)
    return figure


def caption(
    effects: Sequence[Effect],
    base: Evaluated,
    name: str,
    group: Group,
    budget: Budget,
    problem: str,
) -> str:
    instances, seeds = base.gaps.shape
    _, mean, low, high = figures.interval(base.by_instance)
    means = [
        "{0} {2:+.3f} ({3:+.3f} to {4:+.3f})".format(each.name, *each.interval())
        for each in effects
    ]
    lost = ", ".join(f"{each.name} {each.lost}" for each in effects if each.lost)
    left = (
        f" Left out, because one of the two rollouts failed, of {base.gaps.size}: {lost}."
        if lost
        else ""
    )
    return (
        f"State interventions on the pair {name}: mean paired increase of the final reference gap "
        f"over unmodified execution, in percentage points ({instances} instances of {problem} "
        f"{group.key}, {seeds} seeds, {budget.steps} steps), with 95% intervals over the instances "
        f"({TOLD}), each for itself; dots are rollouts.{left} "
        f"Unmodified: {mean:.3f}% ({low:.3f} to {high:.3f}). "
        f"{'; '.join(means)}. {budget.told(problem)}"
    )


if __name__ == "__main__":
    sys.exit(main())
