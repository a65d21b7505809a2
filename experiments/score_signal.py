"""What a pair's score on training instances is worth: ceiling, reliability, and foresight.

    python experiments/score_signal.py --problem tsp --pairs 60
    python experiments/score_signal.py --problem cvrp --pairs 60 --kit none --run runs/cvrp-standard

Pairs are drawn from the grammar, or from those of a run. Each is scored by every training setting
(size, steps, instances, rollouts) and measured on larger instances of another seed after 500 steps.
A gap is the excess over the lowest cost that any of the pairs found on the instance. Printed for
each setting: the gap of the best pair, of the best tenth and of the median; the share of rollouts
at the lowest cost; CPU seconds a pair; and for each utility its split-half reliability (the mean
rank correlation between halves of the rollouts, stepped up by Spearman and Brown) and its rank
correlation with the gap on the larger instances.
"""

import argparse
import random
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts
from spo_jax.program import ROLES, Pair, Program
from spo_jax.runs.run import load_run
from spo_jax.search.utility import UTILITIES

SPLITS = 100  # random halves
SETTINGS = {  # (size, steps, instances, rollouts)
    "tsp": ((50, 100, 6, 2), (50, 20, 6, 2), (100, 100, 4, 1), (100, 30, 6, 1), (100, 50, 6, 1),
            (200, 30, 3, 1), (200, 50, 4, 1), (200, 100, 3, 1), (200, 100, 6, 1)),
    "cvrp": ((50, 100, 6, 2), (50, 30, 6, 2), (100, 50, 6, 1), (100, 100, 6, 1), (150, 50, 4, 1),
             (150, 100, 4, 1), (200, 50, 4, 1), (200, 100, 4, 1)),
}  # fmt: skip
TARGETS = {"tsp": ((200, 4), (500, 2)), "cvrp": ((150, 4), (200, 4))}  # (size, instances)


@dataclass(frozen=True)
class Setting:
    size: int
    steps: int
    instances: int
    rollouts: int


def drawn(problem: Problem, count: int, kit: bool) -> list[Pair]:
    rng = random.Random(0)
    grammars = {role: problem.grammar(role, kit) for role in ROLES}

    def program(role: str) -> Program:
        strategy, source = grammars[role].render(grammars[role].sample(rng))  # type: ignore[index]
        return Program.from_source(role, source, strategy)  # type: ignore[arg-type]

    return [Pair(*map(program, ROLES)) for _ in range(count)]


def of_run(folder: str, count: int) -> list[Pair]:
    run = load_run(folder)
    pairs = [Pair(run[each.destroy].program, run[each.repair].program) for each in run.pairs]
    return random.Random(0).sample(pairs, min(count, len(pairs)))


def gaps(rollouts: Rollouts) -> np.ndarray:
    """[P, I, S] per cent above the lowest cost of the instance; inf for failed rollouts."""
    costs = np.where(rollouts.status == 0, rollouts.best_cost[..., -1], np.inf)
    return 100 * (costs / costs.min(axis=(0, 2), keepdims=True) - 1)


def reliability(scores: np.ndarray) -> float:
    """scores: [P, I, S]."""
    flat = scores.reshape(len(scores), -1)
    if flat.shape[1] < 2:
        return float("nan")
    rng, found = np.random.default_rng(0), []
    for _ in range(SPLITS):
        order = rng.permutation(flat.shape[1])
        half = len(order) // 2
        one, two = flat[:, order[:half]].mean(axis=1), flat[:, order[half : 2 * half]].mean(axis=1)
        found.append(float(spearmanr(one, two).statistic))
    r = float(np.mean(found))
    return 2 * r / (1 + r)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problem", choices=tuple(SETTINGS), default="tsp")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--kit", choices=("lns", "none"), default="lns")
    parser.add_argument("--run", help="pairs of this run in place of the grammar's")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    problem = get_problem(options.problem)
    if options.run:
        pairs = of_run(options.run, options.pairs)
    else:
        pairs = drawn(problem, options.pairs, options.kit == "lns")
    settings = [Setting(*each) for each in SETTINGS[problem.name]]
    with LocalEvaluator(problem, options.workers) as evaluator:
        wanted = []
        for size, count in TARGETS[problem.name]:
            held = problem.sample(size, count, seed=991)
            measured = evaluator.run(pairs, held, (0,), 500, fail_fast=False)
            wanted.append(gaps(measured).mean(axis=(1, 2)))
            low, tenth, middle = np.percentile(wanted[-1], (0, 10, 50))
            seconds = np.nanmean(measured.seconds)
            print(
                f"n = {size}, 500 steps, {count} instances: gap of the best {low:.2f}, best tenth "
                f"{tenth:.2f}, median {middle:.2f}; {seconds:.2f} s a rollout; "
                f"{np.isinf(wanted[-1]).sum()} pairs failed",
                flush=True,
            )
        names = ", ".join(f"r({size})" for size, _ in TARGETS[problem.name])
        print(f"\n| n, steps, rollouts | best | best tenth | median | at the lowest | s a pair | "
              f"{' | '.join(f'{name}: reliability, {names}' for name in UTILITIES)} |")  # fmt: skip
        print("|---" * (6 + len(UTILITIES)) + "|")
        for each in settings:
            instances = problem.sample(each.size, each.instances, seed=0)
            found = evaluator.run(pairs, instances, range(each.rollouts), each.steps)
            ok = found.ok & np.isfinite(sum(wanted))
            excess = gaps(found)[ok]
            low, tenth, middle = np.percentile(excess.mean(axis=(1, 2)), (0, 10, 50))
            cells = []
            for utility in UTILITIES.values():
                scores = utility(found, instances)[ok]
                mean = scores.mean(axis=(1, 2))
                ahead = [-float(spearmanr(mean, gap[ok]).statistic) for gap in wanted]
                cells.append(f"{reliability(scores):.2f}, " + ", ".join(f"{r:.2f}" for r in ahead))
            seconds = np.nansum(found.seconds[ok]) / ok.sum()
            print(
                f"| {each.size}, {each.steps}, {each.instances} x {each.rollouts} | {low:.2f} | "
                f"{tenth:.2f} | {middle:.2f} | {(excess < 1e-6).mean():.0%} | {seconds:.2f} | "
                f"{' | '.join(cells)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
