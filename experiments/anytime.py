"""Figure 2 (a2): the best gap after every LNS step, SPO's pair against the baselines.

    python experiments/anytime.py --budget small
    python experiments/anytime.py --pair docs/pairs/tsp-standard.py --contenders spo,alns,2-opt

What searches has a curve; a construction or a descent has one value, a level line. A curve is the
mean over instances of each one's mean over rollouts and discovery runs, its band the 95%
interval over the instances. ALNS starts from its own first solution, LNS from a random one, which
is why they do not begin together.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import figures
from common.budgets import PROBLEMS, Budget, Group, find_group
from common.commandline import add_arguments, chosen, folder, script, workers
from common.compared import ONCE
from common.contenders import OURS, Contender, asked
from common.discovered import runs_of
from common.evaluated import Evaluated, evaluate, load, mean_of_known

from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.intervals import TOLD
from spo_jax.envs.report.reporting import Meter
from spo_jax.errors import InputError, MissingExtra


@dataclass(frozen=True, eq=False)
class Curve:
    """One contender on a group. by_instance: [I, K] percent at `steps` [K]; K = 1 without steps.

    rollouts, failed: counts. runs: discovery runs behind it, 0 for a baseline.
    """

    who: Contender
    steps: np.ndarray
    by_instance: np.ndarray
    rollouts: int
    failed: int
    runs: int

    def band(self) -> np.ndarray:
        """[K, 4]: at each step how many instances, their mean and its interval."""
        return np.array([figures.interval(column) for column in self.by_instance.T])


def main() -> int:
    parser = argparse.ArgumentParser(description="Best gap over LNS steps, against the baselines.")
    parser.add_argument("--problem", choices=PROBLEMS, default="tsp")
    parser.add_argument(
        "--group", default="uniform-100", help="a column of the tables, as uniform-50 or cvrplib-A"
    )
    parser.add_argument("--pair", metavar="PATH", help="SPO's pair: a pair file or a run folder")
    parser.add_argument(
        "--contenders", metavar="NAMES", help="with commas between them (default: all)"
    )
    add_arguments(parser)
    return script("anytime.py", parser, run)


def run(args: argparse.Namespace) -> None:
    budget, out, hands = chosen(args), folder(args), workers(args)
    problem = get_problem(args.problem)
    group = find_group(args.group, budget.groups(args.problem, args.data))
    who = asked(args.problem, args.contenders, pair=args.pair)
    with Meter(sys.stderr, sys.stdout) as meter:
        instances = load(group, problem, effort=budget.effort, own=args.references, progress=meter)
    figures.require_references(instances)
    curves, left_out = [], []
    for each in who:
        try:
            if each.discovered:
                runs_of(each, args.problem, budget, out, hands)  # with a display of its own
            with Meter(sys.stderr, sys.stdout) as meter:
                found = evaluate(
                    each, problem, instances, budget, out, workers=hands, progress=meter
                )
        except MissingExtra as error:
            left_out.append(f"{each.label} is left out: {error}.")
            print(left_out[-1])
            continue
        curve = curve_of(each, found)
        if np.isfinite(curve.by_instance[:, -1]).any():
            curves.append(curve)
        else:
            left_out.append(f"{each.label} is left out: all its rollouts failed.")
    if not curves:
        raise InputError("there is nothing to draw: none of these contenders could run here")
    stem = out / f"anytime-{args.problem}-{group.key}"
    table = figures.write_csv(
        Path(f"{stem}.csv"),
        ("method", "step", "instances", "gap_percent", "low", "high"),
        [
            (curve.who.label, int(step), int(count), mean, low, high)
            for curve in curves
            for step, (count, mean, low, high) in zip(curve.steps, curve.band(), strict=True)
        ],
    )
    text = " ".join([caption(curves, group, len(instances), budget, args), *left_out])
    with figures.look():
        figures.publish(draw(curves), stem, text, [table])


# --- numbers --------------------------------------------------------------------------------------


def curve_of(who: Contender, found: Sequence[Evaluated]) -> Curve:
    """What a contender's evaluations, one a discovery run, say at some steps."""
    steps = found[0].best_cost.shape[-1] - 1
    at = figures.milestones(steps) if steps else np.zeros(1, np.int64)
    by_run = [mean_of_known(each.curves[:, :, at], axis=1) for each in found]
    return Curve(
        who,
        at,
        mean_of_known(np.stack(by_run), axis=0),
        rollouts=sum(each.statuses.size for each in found),
        failed=sum(each.failed for each in found),
        runs=len(found) if who.discovered else 0,
    )


# --- the picture ----------------------------------------------------------------------------------


def draw(curves: Sequence[Curve]) -> Any:
    figure, panels = figures.new(figures.COLUMN + 0.4, 2.9)
    axes = panels[0, 0]
    figures.log_axis(axes, "y")
    figures.log_axis(axes, "x", steps=(1, 2, 5))
    last = max(int(curve.steps[-1]) for curve in curves)
    axes.set_xlim(1, max(last, 2))
    ends = []
    for curve in curves:
        _, mean, low, high = curve.band().T
        mean, who = figures.above_zero(mean), curve.who
        look: dict[str, Any] = {
            "color": who.colour,
            "linestyle": who.line,
            "linewidth": figures.SLIM * who.width,
        }
        if len(curve.steps) == 1:
            axes.axhline(mean[0], **(look | {"linewidth": 0.9}), zorder=1)
        else:
            axes.fill_between(curve.steps, low, high, color=who.colour, alpha=0.15, linewidth=0)
            axes.plot(curve.steps, mean, **look, zorder=3 if who.family == OURS else 2)
        if np.isfinite(mean[-1]):
            ends.append((who.label, float(mean[-1]), who.colour))
    axes.set_xlabel("LNS step")
    axes.set_ylabel("mean best gap (%)")
    figures.end_labels(axes, ends)
    return figure


def caption(
    curves: Sequence[Curve], group: Group, count: int, budget: Budget, args: argparse.Namespace
) -> str:
    told = ["Mean best reference gap after each LNS step on", f"{group.block} {group.label}:"]
    seeds = budget.evaluation_seeds
    told += [f"{count} instances, {seeds} rollouts of {budget.steps} steps of each method;"]
    told += [f"95% intervals over the instances at each step for itself ({TOLD})."]
    told += [ONCE]
    if args.pair:
        told += [f"SPO is the pair in {Path(args.pair).name}."]
    told += [
        f"{curve.who.label}: {curve.failed} of {curve.rollouts} rollouts failed and are left out."
        for curve in curves
        if curve.failed
    ]
    told += [
        f"{curve.who.label}: {curve.who.note}."
        for curve in curves
        if curve.who.note and curve.who.family != OURS
    ]
    ends = {curve.who.label: float(curve.band()[-1, 1]) for curve in curves}
    if low := [label for label, end in ends.items() if end <= 0]:
        told += [figures.below(low)]
    final = [f"{label} {end:.3f}" for label, end in ends.items()]
    told += ["At the end:", ", ".join(final) + " (%).", budget.told(args.problem)]
    return " ".join(told)


if __name__ == "__main__":
    sys.exit(main())
