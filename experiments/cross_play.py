"""Figure 2 (b2): programs of several rounds of one discovery run, evaluated with each other.

    python experiments/cross_play.py
    python experiments/cross_play.py --run runs/cvrp-standard-seed0 --rounds 1,3,6

From each round come its new destroys with the highest leader credit and its new repairs with the
highest J. Every destroy runs with every repair on instances that the run has not seen; a cell is
the mean best gap of the pairs of its two rounds. A pair that fails, because a repair cannot handle
another's destroy, is counted and left out of the mean.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from common import cli, figures
from common.evaluated import evaluate_pair, load_group, mean_of_known
from common.runs import asked_runs, best_programs
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.runs.run import Run

GAMMA = 0.5  # of the colours' power norm
COLUMNS = 6  # rounds that are shown, at most, unless they are named
EACH = {"smoke": 1, "small": 2, "paper": 3}  # programs of a role and round


@dataclass(frozen=True, eq=False)
class Cells:
    """Axes: destroy round, repair round. gaps: [K, K] percent, NaN where every pair failed.

    failed: [K, K] pairs.
    """

    rounds: Sequence[int]
    gaps: np.ndarray
    failed: np.ndarray


def run(args: argparse.Namespace) -> None:
    context, (found, *_) = asked_runs(args, cli.context(args))
    rounds = listed(args.rounds, found)
    each = args.programs or EACH[context.budget.name]
    destroys, repairs = (
        [program for k in rounds for program in best_programs(found, k, role, each)]
        for role in ("destroy", "repair")
    )
    instances = load_group(context, args.group)[: args.instances]
    steps = args.steps or found.config.evaluation.steps
    gaps = np.full((len(destroys), len(repairs)), np.nan)
    rows = []
    for (i, destroy), (j, repair) in product(enumerate(destroys), enumerate(repairs)):
        pair, who = Pair(destroy.program, repair.program), f"{destroy.name} with {repair.name}"
        result = evaluate_pair(pair, found.config, context, instances, who=who, steps=steps)
        gaps[i, j] = result.gaps.mean()  # NaN if any rollout failed: the pair fails
        rows.append((destroy.round, repair.round, destroy.name, repair.name, gaps[i, j]))
    cells = tabled(gaps, rounds, each)
    name = context.problem.name
    caption = (
        f"Destroy and repair programs of the given rounds of one {name} run ({found.path.name}, "
        f"{found.rounds} rounds), evaluated with each other: mean best gap, {each * each} pairs "
        f"per cell, {len(instances)} unseen instances ({args.group}), "
        f"{context.budget.evaluation_seeds} rollouts of {steps} steps each; lower is better. "
        f"Failed pairs, left out: {cells.failed.sum()} of {gaps.size}."
    )
    columns = ("destroy_round", "repair_round", "destroy", "repair", "gap_percent")
    stem = f"{context.out}/cross-play-{name}-{found.path.name}"
    figures.publish(draw(cells), stem, caption, rows, columns)


def listed(text: str | None, found: Run) -> tuple[int, ...]:
    """The rounds that are asked for. Raises InputError for what is no list of rounds."""
    if text is None:
        spaced = np.linspace(1, found.rounds, min(COLUMNS, found.rounds))
        return tuple(int(k) for k in np.unique(np.rint(spaced)))
    try:
        rounds = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--rounds {text}: give numbers with commas between them") from None
    if list(rounds) != sorted(set(rounds)):
        raise InputError(f"--rounds {text}: give each round once, the earliest first")
    return rounds


def tabled(gaps: np.ndarray, rounds: Sequence[int], each: int) -> Cells:
    """Cells from pairs. gaps: [K*N, K*N] percent, N = `each` programs a round, NaN for failures."""
    K = len(rounds)
    blocks = gaps.reshape(K, each, K, each).swapaxes(1, 2).reshape(K, K, each * each)
    return Cells(rounds, mean_of_known(blocks), (~np.isfinite(blocks)).sum(axis=-1))


def draw(cells: Cells) -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    figure, panels = figures.new(figures.COLUMN, 2.9)
    axes = panels[0, 0]
    known = cells.gaps[np.isfinite(cells.gaps)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    norm = PowerNorm(GAMMA, low, max(high, low + 1e-9))
    colours = colormaps["viridis_r"].with_extremes(bad="white")
    image = axes.imshow(np.ma.masked_invalid(cells.gaps), cmap=colours, norm=norm, origin="lower")
    for i, j in np.ndindex(cells.gaps.shape):
        value, lost = cells.gaps[i, j], cells.failed[i, j]
        text = f"{value:.2f}" + (f"\n{lost} failed" if lost else "")
        dark = np.isfinite(value) and norm(value) > 0.5
        axes.text(
            j, i, text if np.isfinite(value) else "failed", ha="center", va="center", fontsize=6,
            color="white" if dark else figures.INK,
        )  # fmt: skip
    places = range(len(cells.rounds))
    axes.set_xticks(places, cells.rounds)
    axes.set_yticks(places, cells.rounds)
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="repair programs of round", ylabel="destroy programs of round")
    bar = figure.colorbar(image, ax=axes, shrink=0.86, pad=0.02, ticks=MaxNLocator(6))
    bar.outline.set_visible(False)
    bar.set_label("mean best gap (%)")
    return figure


def main() -> int:
    parser = cli.parser(__doc__, problem="cvrp", group="uniform-50", runs=True)
    parser.add_argument("--rounds", metavar="1,2,...", help="default: six, evenly spaced")
    parser.add_argument("--programs", type=int, metavar="N", help="of a role and round")
    parser.add_argument("--instances", type=int, default=6, help="of the group, at most")
    parser.add_argument("--steps", type=int, metavar="N", help="default: those of the discovery")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
