"""How far the chosen pair is from the best that a run has met: validation, and successive halving.

    python experiments/choosing.py --runs 8

Each run is a discovery of its own seed. Its best pairs by J, one per destroy, all run on the same
held-out instances with the steps of a validation. A rule then chooses among them on a part of these
instances, and its regret is the gap of its choice minus the least gap of all, on the others. Parts
are drawn again and again; a run's regret is the mean over them. The least gap is partly luck, so
regret is overstated. Gaps are to the lowest cost that any pair found, in percentage points.

Two variances say what a rule would lose in expectation: of the pairs' true gaps (spread) and of a
rollout around them (noise), by analysis of variance. In normal worlds that have them, with the
finalists in random order, regret is known: among as many pairs as the runs have, measured as it is
in the runs and by the true gaps; and by the true gaps against the best of MET pairs. A few
instances are enough for the last; with fewer than the rules take, it is the only one.

Writes into OUT: the runs, of each its costs SEED.npz, kept block by block, and choosing.md. The
same command resumes, and more --runs add to it.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from common import cli
from common.runs import discover
from common.tables import markdown, write_text
from spo_jax import presets
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.intervals import mean_interval
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import shown_with
from spo_jax.errors import InputError
from spo_jax.runs.run import Run
from spo_jax.search.halving import halving, rungs
from spo_jax.seeding import derive, numpy_rng

BLOCK = 4  # instances that are kept at a time
DRAWS = 400
WORLDS = 2000
MET = 48  # pairs of a normal world
RULES = (  # name, finalists, most instances of one of them
    ("highest J", 1, 0),
    ("validation", 6, 4), ("halving", 12, 4),
    ("validation", 8, 4), ("validation", 16, 2), ("halving", 16, 4),
    ("validation", 16, 4), ("halving", 16, 8),
    ("validation", 24, 9), ("halving", 24, 9), ("halving", 48, 16), ("halving", 48, 24),
)  # fmt: skip

Rule = Callable[[np.ndarray], int]  # [P, I] gaps of the finalists, the highest J first -> a pair


def highest(gaps: np.ndarray) -> int:
    return 0


def lowest(gaps: np.ndarray) -> int:
    """Validation of all pairs on all instances."""
    return int(np.nanargmin(gaps.mean(axis=1)))


def halved(gaps: np.ndarray) -> int:
    """The pair that successive halving ends with; of equals the one with the higher J."""

    def measure(pairs: Sequence[int], places: Sequence[int]) -> np.ndarray:
        return -gaps[np.ix_(pairs, places)][..., None]

    values = halving(len(gaps), range(gaps.shape[1]), measure)
    return int(np.nanargmax([np.nan if value is None else value for value in values]))


CHOICES: dict[str, Rule] = {"highest J": highest, "validation": lowest, "halving": halved}


def cost_of(name: str, pairs: int, instances: int) -> int:
    """Rollouts that a rule takes."""
    if name != "halving":
        return pairs * instances
    before = [0, *(seen for _, seen in rungs(pairs, instances))]
    steps = zip(rungs(pairs, instances), before, strict=False)
    return sum(size * (seen - old) for (size, seen), old in steps)


def regrets(gaps: np.ndarray, draws: int) -> np.ndarray:
    """[rules] the mean regret of each rule over random parts. gaps: [P, I], NaN where one failed.

    Of the instances in random order the first half are to choose on, the others tell the truth. NaN
    for a rule that takes more pairs or instances than there are.
    """
    found = np.full((draws, len(RULES)), np.nan)
    rng, pool = numpy_rng("choosing"), gaps.shape[1] // 2
    for draw in range(draws):
        order = rng.permutation(gaps.shape[1])
        truth = gaps[:, order[pool:]].mean(axis=1)
        for k, (name, pairs, instances) in enumerate(RULES):
            if instances > pool or pairs > len(gaps):
                continue
            chosen = CHOICES[name](gaps[:pairs, order[:instances]])
            found[draw, k] = truth[chosen] - np.nanmin(truth)
    return found.mean(axis=0)


def variances(gaps: np.ndarray) -> tuple[float, float]:
    """Standard deviations of the pairs' true gaps and of a rollout around them, by two-way analysis
    of variance. gaps: [P, I], NaN where a pair failed, which is left out.
    """
    fine = gaps[np.isfinite(gaps).all(axis=1)]
    pairs, instances = fine.shape
    left = fine - fine.mean(axis=0)
    means = left.mean(axis=1)
    within = ((left - means[:, None]) ** 2).sum() / ((pairs - 1) * (instances - 1))
    between = instances * (means**2).sum() / (pairs - 1)
    return float(np.sqrt(max((between - within) / instances, 0.0))), float(np.sqrt(within))


def expected(
    spread: float, noise: float, worlds: int, pairs: int = MET, pool: int = 0
) -> np.ndarray:
    """[2, rules] mean regrets among `pairs` pairs of normal worlds: by true gaps, and by those
    on `pool` other instances, as in a run. NaN for a rule that takes more pairs.
    """
    rng = numpy_rng("choosing", "worlds", pairs)
    found = np.full((2, worlds, len(RULES)), np.nan)
    for world in range(worlds):
        true = rng.normal(0, spread, pairs)
        gaps = true[:, None] + rng.normal(0, noise, (pairs, max(most for *_, most in RULES)))
        seen = true + rng.normal(0, noise / np.sqrt(max(pool, 1)), pairs)
        for k, (name, finalists, instances) in enumerate(RULES):
            if finalists <= pairs:
                chosen = CHOICES[name](gaps[:finalists, :instances])
                found[:, world, k] = true[chosen] - true.min(), seen[chosen] - seen.min()
    return found.mean(axis=1)


def costs_of(run: Run, where: Path, args: argparse.Namespace) -> np.ndarray:
    """[P, I] final costs of a run's best pairs, NaN where one failed; continues what is kept."""
    pairs = [each.pair for each in run.best_pairs(args.pairs)]
    problem = get_problem(run.config.problem)
    instances = problem.sample(args.size, args.instances, derive("choosing", run.config.seed))
    asked = [len(pairs), args.size, args.steps]
    costs = np.zeros((len(pairs), 0))
    if where.exists():
        with np.load(where) as known:
            if known["asked"].tolist() != asked:
                raise InputError(f"{where} is of other --pairs, --size or --steps: use another OUT")
            costs = known["costs"][:, : args.instances]
    terms = run.config.evaluation
    with LocalEvaluator(
        problem,
        args.workers,
        cpu_seconds=terms.cpu_seconds,
        memory_mb=terms.memory_mb,
        on_invalid=terms.on_invalid,
        shown=shown_with(run.config.generator.state),
        kit=run.config.generator.kit != "none",
        acceptance=terms.acceptance,
        start=terms.start,
    ) as evaluator:
        while costs.shape[1] < args.instances:
            block = instances[costs.shape[1] : costs.shape[1] + BLOCK]
            rollouts = evaluator.run(pairs, block, (0,), args.steps, fail_fast=False)
            costs = np.concatenate([costs, rollouts.final_cost[..., 0]], axis=1)
            np.savez_compressed(where, costs=costs, asked=np.array(asked))
            print(f"{where}: {costs.shape[1]} of {args.instances} instances", flush=True)
    return costs


def run(args: argparse.Namespace) -> None:
    if args.pairs < 3 or args.instances < 2:
        raise InputError("variances take --pairs of at least 3 and --instances of at least 2")
    out, rows, ends, parts = Path(args.out), [], [], []
    out.mkdir(parents=True, exist_ok=True)
    own = {"generator": args.generator, "select": "utility", "finalists": 0}
    for seed in range(args.runs):
        more = own | {"seed": seed, "workers": args.workers}
        found = discover(args.problem, args.preset, more, out / f"seed{seed}")
        costs = costs_of(found, out / f"{seed}.npz", args)
        gaps = 100 * (costs / np.nanmin(costs, axis=0) - 1)
        rows.append(regrets(gaps, DRAWS))
        parts.append(variances(gaps))
        ends.append(np.nanpercentile(gaps.mean(axis=1), (0, 50, 100)))
        spread, noise = np.sqrt(np.mean(np.square(parts), axis=0))  # pooled
        alike = expected(spread, noise, WORLDS, len(gaps), gaps.shape[1] // 2)
        text = shown(np.array(rows), alike, expected(spread, noise, WORLDS)[0])
        text += f"\nspread {spread:.2f}, noise {noise:.2f} points; {len(gaps)} pairs a run, "
        text += f"{gaps.shape[1]} instances of {args.size}, {args.steps} steps; gaps, best, median "
        text += f"and worst: {'; '.join(' '.join(f'{x:.2f}' for x in each) for each in ends)}\n"
        write_text(out / "choosing.md", text)
    print(f"\n{text}")


def shown(rows: np.ndarray, alike: np.ndarray, worlds: np.ndarray) -> str:
    """A table of rules. rows: [runs, rules]. alike: [2, rules], worlds: [rules], of `expected`."""
    lines = []
    for k, (name, pairs, instances) in enumerate(RULES):
        each, text = rows[:, k], "–"
        true, measured = ("–" if np.isnan(x) else f"{x:.3f}" for x in alike[:, k])
        if np.isfinite(each).all():
            text = f"{each.mean():.3f}"
            if len(each) > 1:
                text += " ({:.3f} to {:.3f})".format(*mean_interval(each))
        else:
            measured = "–"
        how = f"{name}, {pairs} on {instances}" if instances else name
        cost = str(cost_of(name, pairs, instances))
        lines.append([how, cost, text, measured, true, f"{worlds[k]:.3f}"])
    heads = ["rule", "rollouts", f"measured, runs: {len(rows)}", "measured, worlds", "true, worlds"]
    return markdown([*heads, f"true, of {MET} pairs"], lines) + "\n"


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("--problem", choices=("tsp", "cvrp"), default="tsp")
    parser.add_argument("--runs", type=int, default=8, metavar="N", help="seeds 0 to N-1")
    parser.add_argument("--preset", default=presets.DEFAULT_PRESET)
    parser.add_argument("--generator", default="grammar")
    parser.add_argument("--pairs", type=int, default=16, metavar="N", help="finalists of a run")
    parser.add_argument("--size", type=int, default=200, help="of the held-out instances")
    parser.add_argument("--instances", type=int, default=16, metavar="N", help="half to choose on")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", default="runs/choosing", metavar="FOLDER")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
