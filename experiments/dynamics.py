"""Figure 2 (a1): the best-so-far gap over the rounds of discovery, for several seeds.

    python experiments/dynamics.py
    python experiments/dynamics.py --run runs/a runs/b

After every round a run has a pair with the highest J so far. Its gap is its mean reference gap on
the instances and seeds that J is measured on: the rollouts of the discovery are repeated for these
few pairs, and their J must come out the same. A new best pair may have a slightly larger gap,
because J weighs an instance by its random start. The second curve is the gap of the new pair with
the median J of each round: what the generator and its populations have learned.

Thin lines: runs. Thick line: their mean. Band: one standard deviation over runs.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common import cli, figures
from common.cli import Context
from common.contenders import SPO
from common.evaluated import referenced, require_references
from common.runs import again, asked_runs, typical_pairs
from spo_jax.envs.gaps import reference_gap
from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.runs.run import Run
from spo_jax.search.instances import training_instances


@dataclass(frozen=True)
class Curve:
    """A run. gaps, typical: [K] percent, of the best pair so far and of the round's median new
    pair; NaN where there is none.
    """

    run: Run
    gaps: Sequence[float]
    typical: Sequence[float]


def run(args: argparse.Namespace) -> None:
    context, runs = asked_runs(args, cli.context(args))
    curves = [curve(each, context) for each in runs]
    rows = [
        (c.run.path.name, c.run.config.seed, best.round, best.evaluations, best.utility, *gaps)
        for c in curves
        for best, *gaps in zip(c.run.best_by_round, c.gaps, c.typical, strict=True)
    ]
    columns = ("run", "seed", "round", "evaluations", "utility", "gap_percent",
               "median_gap_percent")  # fmt: skip
    first, problem = runs[0].config.evaluation, context.problem.name
    best, typical = summary([c.gaps for c in curves])[0], summary([c.typical for c in curves])[0]
    caption = (
        f"Best-so-far gap on the training instances of each run ({problem}, {first.instances} of "
        f"size {first.size}); runs: {len(runs)}. From round 1 to {len(best)}: best so far "
        f"{best[0]:.3f}% to {best[-1]:.3f}%, median new pair {typical[0]:.3f}% to "
        f"{typical[-1]:.3f}%. Thin: runs; thick: their mean; band: one standard deviation."
    )
    figures.publish(draw(curves), f"{context.out}/dynamics-{problem}", caption, rows, columns)


def curve(run: Run, context: Context) -> Curve:
    """The gaps of a run. Raises InputError for a run without rounds."""
    if not run.best_by_round:
        raise InputError(f"{run.path} has no finished round yet")
    best, typical = [each.pair for each in run.best_by_round], typical_pairs(run)
    instances = referenced(context, training_instances(run.config, context.problem))
    pairs = {pair.digest: pair for pair in (*best, *typical) if pair}
    gaps = discovery_gaps(run, require_references(instances), pairs, context.workers)
    of = [[gaps[pair.digest] if pair else math.nan for pair in some] for some in (best, typical)]
    return Curve(run, *of)


def discovery_gaps(
    run: Run, instances: Sequence[Instance], pairs: dict[str, Pair], workers: int
) -> dict[str, float]:
    """Mean gaps by digest from the rollouts of the discovery, repeated; says where J differs."""
    print(f"{run.path.name}: {len(pairs)} pairs on {len(instances)} instances")
    rollouts, scores = again(
        run, list(pairs.values()), instances, seed=run.config.seed, workers=workers
    )
    utility = dict(zip(pairs, scores, strict=True))
    for each in run.best_by_round:
        if each.pair and not math.isclose(each.utility, utility[each.pair.digest], rel_tol=1e-9):
            print(f"{run.path.name}, round {each.round}: J differs from that of the discovery")
    gaps = mean_gaps(rollouts.final_cost, instances)
    return dict(zip(pairs, map(float, gaps), strict=True))


def mean_gaps(cost: np.ndarray, instances: Sequence[Instance]) -> np.ndarray:
    """cost [P, I, S] -> [P] percent, NaN where a cost is missing."""
    known = np.array([each.reference for each in instances], float)
    return reference_gap(cost, known[:, None]).mean(axis=(1, 2))


def summary(series: Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Of curves [runs][K]: [K] the mean and the standard deviation over runs (NaN of one run), up
    to the last round that all runs have.
    """
    last = min(map(len, series))
    values = np.array([each[:last] for each in series])
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(last, math.nan)
    return values.mean(axis=0), spread


def draw(curves: Sequence[Curve]) -> Any:
    figure, panels = figures.new(figures.COLUMN, 2.4)
    axes = panels[0, 0]
    shown = [
        ("median of the round's new pairs", [c.typical for c in curves], figures.MUTED, "--", 1.3),
        ("best so far", [c.gaps for c in curves], SPO.colour, "-", 0.8 * SPO.width),
    ]
    for label, series, colour, line, width in shown:
        mean, spread = summary(series)
        rounds = np.arange(1, len(mean) + 1)
        low = np.maximum(mean - spread, 0)
        axes.fill_between(rounds, low, mean + spread, color=colour, alpha=0.15, linewidth=0)
        for each in series:
            axes.plot(np.arange(1, len(each) + 1), each, color=colour, alpha=0.45, linewidth=0.6)
        axes.plot(rounds, mean, color=colour, linestyle=line, linewidth=width, label=label)
    axes.set_ylim(bottom=-0.04 * axes.get_ylim()[1])
    figures.whole_rounds(axes)
    axes.set(xlabel="discovery round", ylabel="gap on the training instances (%)")
    axes.legend(reverse=True)
    return figure


def main() -> int:
    return cli.main(cli.parser(__doc__, runs=True), run)


if __name__ == "__main__":
    sys.exit(main())
