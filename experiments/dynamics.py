"""Figure 2 (a1): the best-so-far gap over the rounds of discovery, for several seeds.

    python experiments/dynamics.py --budget small
    python experiments/dynamics.py --run runs/a runs/b        (finished runs instead)

After every round a run retains the pair with the highest J so far. Its discovery gap is its mean
reference gap on the instances and seeds that J is measured on: the rollouts of the discovery are
repeated for the few pairs that were ever retained, and their J must come out the same. J weighs an
instance by its random start and the gap does not, so a new best pair may have a slightly larger
gap; it is drawn as it is. Every run has training instances of its own.

Where a writer solves the training instances at once there is nothing left to see in that. So the
figure also has the gap of the pair with the median J of those that each round found: what the
writer and the populations that it is shown have learned.

Thin lines: runs. Thick line: their mean. Band: one standard deviation over the runs each way.
"""

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import figures
from common.budgets import PROBLEMS
from common.commandline import add_arguments, chosen, folder, script, workers
from common.contenders import SPO
from common.discovered import runs_of
from common.figures import count
from common.rounds import typical_pairs

from spo_jax import __version__
from spo_jax.envs.metrics import reference_gap
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.shown import shown_with
from spo_jax.envs.textfiles import write_atomically
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.search.instances import training_instances
from spo_jax.search.runs.records import BestRecord
from spo_jax.search.runs.run import Run, load_run
from spo_jax.search.utility import get_utility, mean_scores


@dataclass(frozen=True)
class Curve:
    """A run. rounds: as `Run.best_by_round`. gaps, typical: [K] percent, of the pair that is
    retained after a round and of the median pair that the round found; NaN where there is none.
    """

    name: str
    seed: int
    rounds: tuple[BestRecord, ...]
    gaps: tuple[float, ...]
    typical: tuple[float, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description="Best-so-far discovery gap over rounds.")
    parser.add_argument("--problem", choices=PROBLEMS, default="tsp")
    parser.add_argument(
        "--run", nargs="+", metavar="FOLDER", help="finished runs, instead of the budget's own"
    )
    add_arguments(parser)
    return script("dynamics.py", parser, run)


def run(args: argparse.Namespace) -> None:
    budget, out, hands = chosen(args), folder(args), workers(args)
    if args.run:
        runs = [load_run(path) for path in args.run]
        if len({each.config.problem for each in runs}) > 1:
            raise InputError("--run: these runs are not of one problem; draw a figure for each")
        told = "Given runs."
    else:
        runs, told = runs_of(SPO, args.problem, budget, out, hands), budget.told(args.problem)
    curves = [curve(each, out / "dynamics", hands, budget.effort, args.references) for each in runs]
    problem = runs[0].config.problem
    stem = out / f"dynamics-{problem}"
    rows = [
        (c.name, c.seed, best.round, best.evaluations, best.utility, gap, typical)
        for c in curves
        for best, gap, typical in zip(c.rounds, c.gaps, c.typical, strict=True)
    ]
    head = ("run", "seed", "round", "evaluations", "utility", "gap_percent", "median_gap_percent")
    table = figures.write_csv(Path(f"{stem}.csv"), head, rows)
    with figures.look():
        figures.publish(draw(curves), stem, f"{caption(curves, runs)} {told}", [table])


# --- numbers --------------------------------------------------------------------------------------


def curve(found: Run, cache: Path, hands: int, effort: str, own: str | None) -> Curve:
    """The discovery gaps of a run; effort, own: as `referenced` has them.

    Raises InputError for a run without rounds.
    """
    rounds = found.best_by_round
    if not rounds:
        raise InputError(f"{found.path} has no finished round yet")
    known = {best.pair.digest: best.utility for best in rounds if best.pair}
    typical = typical_pairs(found)
    pairs = {b.pair.digest: b.pair for b in rounds if b.pair} | {p.digest: p for p in typical if p}
    config = found.config
    instances = training_instances(config, get_problem(config.problem))
    instances = figures.referenced(instances, effort, own)
    figures.require_references(instances)
    gaps = kept_gaps(found, instances, pairs, known, cache, hands)
    return Curve(
        found.path.name,
        found.config.seed,
        tuple(rounds),
        tuple(gaps[best.pair.digest] if best.pair else math.nan for best in rounds),
        tuple(gaps[pair.digest] if pair else math.nan for pair in typical),
    )


def kept_gaps(
    found: Run,
    instances: Sequence[Instance],
    pairs: dict[str, Pair],
    utilities: dict[str, float],
    cache: Path,
    hands: int,
) -> dict[str, float]:
    """Mean gap of each pair by its digest, from `cache` if it was asked for before."""
    asked: dict[str, Any] = {"spo_jax": __version__, "pairs": sorted(pairs)}
    asked["config"] = {k: v for k, v in found.config.flat().items() if k != "workers"}
    asked["references"] = [instance.reference for instance in instances]
    text = json.dumps(asked, sort_keys=True, default=str)
    path = cache / f"{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}.json"
    try:
        known = json.loads(path.read_text("utf-8"))
        return {digest: float(known[digest]) for digest in pairs}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    gaps = discovery_gaps(found, instances, pairs, utilities, hands)
    if all(map(math.isfinite, gaps.values())):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(gaps, indent=1).encode())
    return gaps


def discovery_gaps(
    found: Run,
    instances: Sequence[Instance],
    pairs: dict[str, Pair],
    utilities: dict[str, float],
    hands: int,
) -> dict[str, float]:
    """The rollouts of the discovery once more. utilities: J by digest, as it was."""
    config = found.config
    print(f"{found.path.name}: {len(pairs)} pairs on {len(instances)} instances")
    with LocalEvaluator(
        get_problem(config.problem),
        hands,
        seed=config.seed,
        cpu_seconds=config.evaluation.cpu_seconds,
        memory_mb=config.evaluation.memory_mb,
        on_invalid=config.evaluation.on_invalid,
        shown=shown_with(config.generator.state),
        unsafe=config.evaluation.unsafe_sandbox,
    ) as evaluator:
        rollouts = evaluator.run(
            list(pairs.values()),
            instances,
            seeds=range(config.evaluation.rollouts),
            steps=config.evaluation.steps,
        )
    scores = get_utility(config.evaluation.utility)(rollouts, instances)
    again = dict(zip(pairs, mean_scores(scores), strict=True))
    for digest, known in utilities.items():
        if not math.isclose(known, again[digest], rel_tol=1e-9):
            print(f"{found.path.name}: pair {digest} had J = {known}, and {again[digest]} now")
    gaps = mean_gaps(rollouts.final_cost, instances)
    return dict(zip(pairs, map(float, gaps), strict=True))


def mean_gaps(cost: np.ndarray, instances: Sequence[Instance]) -> np.ndarray:
    """cost [P, I, S] -> [P] percent, NaN where a cost or a reference is missing."""
    known = [math.nan if i.reference is None else i.reference for i in instances]
    return reference_gap(cost, np.array(known)[:, None]).mean(axis=(1, 2))


def summary(series: Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of curves [runs][K]: [K] the mean, and it less and plus the standard deviation over the runs.

    Up to the last round that all runs have; NaN where a run has none, and the deviation of one run.
    """
    last = min(map(len, series))
    values = np.array([each[:last] for each in series])
    mean = values.mean(axis=0)
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(last, math.nan)
    return mean, mean - spread, mean + spread


# --- the picture ----------------------------------------------------------------------------------


def draw(curves: Sequence[Curve]) -> Any:
    figure, panels = figures.new(figures.COLUMN, 2.4)
    axes = panels[0, 0]
    shown = [
        ("median of the round's new pairs", [c.typical for c in curves], figures.MUTED, "--", 1.3),
        ("best so far", [c.gaps for c in curves], SPO.colour, "-", figures.SLIM * SPO.width),
    ]
    for label, series, colour, line, width in shown:
        mean, low, high = summary(series)
        rounds = np.arange(1, len(mean) + 1)
        axes.fill_between(rounds, np.maximum(low, 0), high, color=colour, alpha=0.15, linewidth=0)
        for each in series:
            axes.plot(np.arange(1, len(each) + 1), each, color=colour, alpha=0.45, linewidth=0.6)
        axes.plot(rounds, mean, color=colour, linestyle=line, linewidth=width, label=label)
    longest = max(len(each.gaps) for each in curves)
    axes.set_xlim(1 - 0.02 * longest, max(longest, 2) + 0.02 * longest)
    highest = axes.get_ylim()[1]
    axes.set_ylim(-0.04 * highest, highest)
    axes.spines["left"].set_visible(False)
    figures.plain_axis(axes.xaxis, ticks=12, whole=True)
    figures.plain_axis(axes.yaxis)
    axes.set_xlabel("discovery round")
    axes.set_ylabel("gap on the training instances (%)")
    axes.legend(reverse=True)
    return figure


def caption(curves: Sequence[Curve], runs: Sequence[Run]) -> str:
    problem, first = runs[0].config.problem, runs[0].config.evaluation
    seeds = ", ".join(str(each.seed) for each in curves)
    mean = summary([each.gaps for each in curves])[0]
    typical = summary([each.typical for each in curves])[0]
    return (
        f"Best-so-far discovery gap on {count(first.instances, 'training instance')} of each run "
        f"({problem}, size {first.size}, {count(first.rollouts, 'rollout')} of {first.steps} "
        f"steps); {count(len(curves), 'run')} (seeds {seeds}), {count(len(mean), 'round')}. Thin: "
        f"runs; thick: their mean; band: one standard deviation over the runs. From round 1 to "
        f"{len(mean)}: best so far {mean[0]:.3f}% to {mean[-1]:.3f}%, median new pair "
        f"{typical[0]:.3f}% to {typical[-1]:.3f}%."
    )


if __name__ == "__main__":
    sys.exit(main())
