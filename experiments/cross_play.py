"""Figure 2 (b2): programs of several rounds of one discovery run, played against each other.

    python experiments/cross_play.py --budget small
    python experiments/cross_play.py --run runs/cvrp-standard-seed0 --rounds 1,3,6

From each of the rounds come the destroys and the repairs, written in that round, that earned most
there: a destroy by its leader credit, a repair by its pair's J. Every destroy then meets every
repair on instances that the run has not seen, and a cell is the mean best gap of the pairs of its
two rounds. A pair that fails, because a repair cannot cope with another's destroy, is counted and
left out of the mean.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import figures
from common.budgets import PROBLEMS, Budget, find_group
from common.commandline import add_arguments, chosen, folder, script, workers
from common.contenders import SPO
from common.discovered import runs_of
from common.evaluated import evaluate_pair, load, mean_of_known
from common.figures import count as counted
from common.rounds import Found, best_programs

from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.reporting import Meter
from spo_jax.envs.run.shown import shown_with
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.search.runs.run import Run, load_run

GAMMA = 0.5  # of the colours' power norm
COLUMNS = 6  # rounds that are shown, at most, unless they are named
EACH = {"smoke": 1, "small": 2, "paper": 3}  # programs of a role and round


@dataclass(frozen=True, eq=False)
class Table:
    """Axes: destroy round, repair round. gaps: [K, K] percent, NaN where every pair failed.

    played, failed: [K, K] pairs. by_pair: [K*N, K*N] the gap of each pair, N programs a round.
    """

    rounds: tuple[int, ...]
    gaps: np.ndarray
    played: np.ndarray
    failed: np.ndarray
    by_pair: np.ndarray


def main() -> int:
    parser = argparse.ArgumentParser(description="Programs of several rounds against each other.")
    parser.add_argument("--problem", choices=PROBLEMS, default="cvrp")
    parser.add_argument("--run", metavar="FOLDER", help="a finished run, instead of the budget's")
    parser.add_argument("--rounds", metavar="1,2,...", help="default: six, evenly spaced")
    parser.add_argument("--programs", type=int, metavar="N", help="of a role and round")
    parser.add_argument("--group", default="uniform-50", help="a column of the tables")
    parser.add_argument(
        "--instances", type=int, default=6, metavar="N", help="of the group, at most"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="default: those of the discovery")
    add_arguments(parser)
    return script("cross_play.py", parser, run)


def run(args: argparse.Namespace) -> None:
    budget, out, hands = chosen(args), folder(args), workers(args)
    found = load_run(args.run) if args.run else runs_of(SPO, args.problem, budget, out, hands)[0]
    problem = get_problem(found.config.problem)
    chosen_rounds = listed(args.rounds, found)
    count = EACH[budget.name] if args.programs is None else args.programs
    if count < 1 or args.instances < 1:
        raise InputError("--programs and --instances are at least 1")
    destroys, repairs = (
        [each for k in chosen_rounds for each in best_programs(found, k, role, count)]
        for role in ("destroy", "repair")
    )
    group = find_group(args.group, budget.groups(found.config.problem, args.data))
    few = load(group, problem, effort=budget.effort, references=False)[: args.instances]
    instances = figures.referenced(few, budget.effort, args.references)
    figures.require_references(instances)
    steps = args.steps or found.config.evaluation.steps
    gaps = np.full((len(destroys), len(repairs)), np.nan)
    with Meter(sys.stderr, sys.stdout) as meter:
        for i, j in np.ndindex(gaps.shape):
            evaluated = evaluate_pair(
                Pair(destroys[i].program, repairs[j].program), problem, instances, steps=steps,
                seeds=budget.evaluation_seeds, out=out, workers=hands, patience=budget.patience,
                shown=shown_with(found.config.generator.state),
                on_invalid=found.config.evaluation.on_invalid,
            )  # fmt: skip
            gaps[i, j] = evaluated.gaps.mean()  # NaN if any rollout failed: the pair fails
            meter("pairs", i * len(repairs) + j + 1, gaps.size)
    table = tabled(gaps, chosen_rounds, count)
    stem = out / f"cross-play-{found.config.problem}-{found.path.name}"
    files = written(table, gaps, destroys, repairs, stem)
    text = caption(table, found, count, steps, len(instances), budget, group.key, not args.run)
    with figures.look():
        figures.publish(draw(table), stem, text, files)


def listed(text: str | None, found: Run) -> tuple[int, ...]:
    """The rounds that are asked for. Raises InputError for what is no list of rounds."""
    if text is None:
        spaced = np.linspace(1, found.rounds, min(COLUMNS, found.rounds))
        return tuple(int(k) for k in np.unique(np.rint(spaced).astype(int)))
    try:
        rounds = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--rounds {text}: give numbers with commas between them") from None
    if list(rounds) != sorted(set(rounds)):
        raise InputError(f"--rounds {text}: give each round once, the earliest first")
    return rounds


# --- numbers --------------------------------------------------------------------------------------


def tabled(gaps: np.ndarray, rounds: Sequence[int], each: int) -> Table:
    """Cells from pairs. gaps: [K*N, K*N] percent, N = `each` programs a round, NaN for failures."""
    K = len(rounds)
    blocks = gaps.reshape(K, each, K, each).swapaxes(1, 2).reshape(K, K, each * each)
    failed = (~np.isfinite(blocks)).sum(axis=-1)
    return Table(
        tuple(rounds), mean_of_known(blocks), np.full(failed.shape, each * each), failed, gaps
    )


def written(
    table: Table, gaps: np.ndarray, destroys: Sequence[Found], repairs: Sequence[Found], stem: Path
) -> list[Path]:
    """The cells, and the pairs one by one."""
    each = len(destroys) // len(table.rounds)
    cells = [
        (table.rounds[i], table.rounds[j], table.gaps[i, j], int(table.played[i, j]),
         int(table.failed[i, j]))
        for i, j in np.ndindex(table.gaps.shape)
    ]  # fmt: skip
    pairs = [
        (
            table.rounds[i // each], table.rounds[j // each], destroys[i].program.digest,
            repairs[j].program.digest, destroys[i].credit, repairs[j].credit, gaps[i, j],
        )
        for i, j in np.ndindex(gaps.shape)
    ]  # fmt: skip
    head = ("destroy_round", "repair_round")
    return [
        figures.write_csv(
            Path(f"{stem}.csv"), (*head, "gap_percent", "pairs", "failed_pairs"), cells
        ),
        figures.write_csv(
            Path(f"{stem}-pairs.csv"),
            (*head, "destroy", "repair", "destroy_credit", "repair_credit", "gap_percent"),
            pairs,
        ),
    ]


# --- the picture ----------------------------------------------------------------------------------


def draw(table: Table) -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import PowerNorm

    figure, panels = figures.new(figures.COLUMN, 2.9)
    axes = panels[0, 0]
    known = table.gaps[np.isfinite(table.gaps)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    norm = PowerNorm(GAMMA, low, max(high, low + 1e-9))
    colours = colormaps["viridis_r"].with_extremes(bad="white")
    image = axes.imshow(np.ma.masked_invalid(table.gaps), cmap=colours, norm=norm, origin="lower")
    for i, j in np.ndindex(table.gaps.shape):
        value = table.gaps[i, j]
        if not np.isfinite(value):
            axes.text(j, i, "failed", ha="center", va="center", fontsize=6, color=figures.MUTED)
            continue
        bright = figures.luminance(*colours(float(norm(value)))[:3]) > 0.3
        style = {"ha": "center", "va": "center", "color": figures.INK if bright else "white"}
        axes.text(j, i, f"{value:.2f}", fontsize=6.5, **style)
        if table.failed[i, j]:
            axes.text(j, i - 0.3, f"{table.failed[i, j]} failed", fontsize=5, **style)
    places = range(len(table.rounds))
    axes.set_xticks(places, [str(k) for k in table.rounds])
    axes.set_yticks(places, [str(k) for k in table.rounds])
    axes.tick_params(length=0)
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_xticks(np.arange(-0.5, len(table.rounds)), minor=True)
    axes.set_yticks(np.arange(-0.5, len(table.rounds)), minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="minor", length=0)
    axes.set_xlabel("repair programs of round")
    axes.set_ylabel("destroy programs of round")
    bar = figure.colorbar(image, ax=axes, shrink=0.86, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("mean best gap (%)")
    bar.set_ticks(ticks(norm), labels=list(map(figures.number, ticks(norm))))
    return figure


def ticks(norm: Any, count: int = 6) -> list[float]:
    """Values evenly spaced in the colours, to two digits, that lie within them."""
    spaced = [float(f"{float(v):.2g}") for v in norm.inverse(np.linspace(0, 1, count))]
    return sorted({value for value in spaced if norm.vmin <= value <= norm.vmax})


def caption(
    table: Table, found: Run, each: int, steps: int, instances: int, budget: Budget, group: str,
    own: bool,
) -> str:  # fmt: skip
    lost = int(table.failed.sum())
    left = f" {lost} of {table.by_pair.size} pairs failed and are left out." if lost else ""
    told = budget.told(found.config.problem) if own else f"Run {found.path.name}."
    return (
        f"Destroy and repair programs of the indicated rounds of one {found.config.problem} "
        f"discovery run ({found.rounds} rounds), played against each other: mean best reference "
        f"gap over {counted(each * each, 'pair')} a cell (the {counted(each, 'best program')} of "
        f"each role and round), {counted(instances, 'unseen instance')} ({group}), "
        f"{counted(budget.evaluation_seeds, 'rollout')} of {steps} steps each; colours by a power "
        f"norm with gamma {GAMMA}; lower is better.{left} {told}"
    )


if __name__ == "__main__":
    sys.exit(main())
