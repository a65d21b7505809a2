"""Figure 2 (a2): the best gap after every LNS step, SPO's pair against the baselines.

    python experiments/anytime.py
    python experiments/anytime.py --pair docs/pairs/tsp-standard.py --contenders spo,alns,2-opt

A construction or a descent has one value, a level line. A curve is the mean over instances of each
one's mean over rollouts and discovery runs, its band the 95% interval over instances. ALNS starts
from its own first solution and LNS from a random one, so they begin at different gaps.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common import cli, compared, contenders, figures
from common.contenders import Contender
from common.evaluated import Evaluated, load_group, mean_of_known, milestones
from common.tables import interval
from spo_jax.errors import InputError


@dataclass(frozen=True, eq=False)
class Curve:
    """One contender. by_instance: [I, K] percent at `steps` [K]; K = 1 without steps."""

    who: Contender
    steps: np.ndarray
    by_instance: np.ndarray
    rollouts: int
    failed: int

    def band(self) -> np.ndarray:
        """[K, 4]: at each step how many instances, their mean and its interval."""
        return np.array([interval(column) for column in self.by_instance.T])


def run(args: argparse.Namespace) -> None:
    context, who = cli.context(args), contenders.asked(args)
    instances = load_group(context, args.group)
    measured = compared.measure(who, {args.group: instances}, context)
    curves = [curve_of(m.contender, m.results[args.group]) for m in measured if m.results]
    curves = [each for each in curves if np.isfinite(each.by_instance[:, -1]).any()]
    if not curves:
        raise InputError("there is nothing to draw: none of these contenders could run here")
    rows = [
        (curve.who.label, step, *values)
        for curve in curves
        for step, values in zip(curve.steps, curve.band(), strict=True)
    ]
    ends = [f"{each.who.label} {each.band()[-1, 1]:.3f}" for each in curves]
    failed = [
        f" {each.who.label}: {each.failed} of {each.rollouts} rollouts failed." for each in curves
        if each.failed
    ]  # fmt: skip
    text = (
        f"Mean best reference gap by LNS step on {len(instances)} instances "
        f"({args.problem} {args.group}), with 95% intervals over instances. At the end (%): "
        f"{', '.join(ends)}.{''.join(failed)} {context.summary}"
    )
    stem = f"{context.out}/anytime-{args.problem}-{args.group}"
    columns = ("method", "step", "instances", "gap_percent", "low", "high")
    figures.publish(draw(curves), stem, text, rows, columns)


def curve_of(who: Contender, found: Sequence[Evaluated]) -> Curve:
    """The curve of a contender's evaluations, one per discovery run."""
    steps = found[0].best_cost.shape[-1] - 1
    at = milestones(steps)
    by_run = [mean_of_known(each.curves[:, :, at], axis=1) for each in found]
    return Curve(
        who, at, mean_of_known(np.stack(by_run), axis=0),
        rollouts=sum(each.statuses.size for each in found), failed=sum(e.failed for e in found),
    )  # fmt: skip


def draw(curves: Sequence[Curve]) -> Any:
    figure, panels = figures.new(figures.COLUMN + 0.8, 2.9)
    axes = panels[0, 0]
    figures.log_axis(axes, "x")
    figures.log_axis(axes, "y")
    axes.set_xlim(1, max(2, *(each.steps[-1] for each in curves)))
    for curve in sorted(curves, key=lambda each: -each.band()[-1, 1]):  # the legend's order
        _, mean, low, high = curve.band().T
        mean, style = figures.above_zero(mean), figures.look(curve.who) | {"label": curve.who.label}
        if len(curve.steps) == 1:
            axes.axhline(mean[0], **style | {"linewidth": 0.9, "zorder": 1})
        else:
            axes.plot(curve.steps, mean, **style)
            axes.fill_between(
                curve.steps, low, high, color=curve.who.colour, alpha=0.15, linewidth=0
            )
    axes.set(xlabel="LNS step", ylabel="mean best gap (%)")
    figure.legend(loc="outside right upper")
    return figure


def main() -> int:
    parser = cli.parser(__doc__, group="uniform-100")
    contenders.add_arguments(parser)
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
