"""Gaps of `spo solve` after equal CPU seconds, beside what it was, ALNS and a construction.

    SPO_DATA=FOLDER python experiments/bench/solve.py                 # 8 instances, 10 s on 2 cores
    SPO_DATA=FOLDER python experiments/bench/solve.py --seconds 4 X-n1001-k43 kroA100
    SPO_DATA=FOLDER python experiments/bench/solve.py --methods start --seeds 2 d1655 uniform:10000

Every method but the last two has `seconds` of CPU time on each of `searches` cores, counted in its
own processes, so that a busy machine changes nothing but the wait:

- rollouts: what `spo solve` did before it had anything else: from a random start, improving, each
  search by itself, the best of all;
- spo solve: its defaults, without the CPU time of the construction that it starts from;
- ALNS: our baseline, as many runs as there are searches, each with as many iterations as the time
  allows (from a short run, with the time for its start), the best of all;
- construction: Clarke-Wright for the CVRP, nearest neighbour for the TSP, once;
- start: what `spo solve` starts from, once.

With --seeds a gap is the mean over so many runs. uniform:N is a TSP of N nodes in the unit square;
its reference is 0.7124 sqrt(N) (1 + 0.33 / N), the mean optimum of large ones (Johnson and McGeoch,
1996). towns:N:CAPACITY is a CVRP of N customers, most of them in towns; its reference is the cost
of Clarke and Wright's savings, so gaps are below 0.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.baselines.heuristics import near_savings
from spo_jax.envs.problems.cvrp.files.cvrplib import routes_cost
from spo_jax.envs.problems.cvrp.parts import PAIRED
from spo_jax.envs.problems.tsp.files.weights import euclidean
from spo_jax.envs.report.baselines import get_baseline
from spo_jax.envs.report.solve import shipped_pair, solve
from spo_jax.errors import InputError

INSTANCES: tuple[str, ...] = ("A-n32-k5", "P-n76-k4", "X-n106-k14", "X-n209-k16", "X-n1001-k43")
INSTANCES += ("kroA100", "gr202", "dsj1000")
CONSTRUCTIONS = {"cvrp": "clarke-wright", "tsp": "nearest-neighbor"}
METHODS: tuple[str, ...] = ("rollouts", "spo solve", "ALNS", "construction", "start")
UNIFORM, TOWNS, SEED = "uniform:", "towns:", 2026


def found(name: str) -> tuple[Problem, Instance]:
    """The instance of a name, below SPO_DATA, or a uniform one."""
    if name.startswith(UNIFORM):
        tsp, size = get_problem("tsp"), int(name.removeprefix(UNIFORM))
        [instance] = tsp.sample(size, 1, SEED)
        return tsp, replace(instance, reference=0.7124 * size**0.5 * (1 + 0.33 / size))
    if name.startswith(TOWNS):
        return get_problem("cvrp"), towns(*map(int, name.removeprefix(TOWNS).split(":")))
    folder = Path(os.environ.get("SPO_DATA", "."))
    for problem in map(get_problem, CONSTRUCTIONS):
        for path in sorted(folder.rglob(f"{name}{problem.suffixes[0]}")):
            return problem, problem.read(path)
    raise SystemExit(f"there is no {name} below {folder}: set SPO_DATA")


def towns(size: int, capacity: int) -> Instance:
    """Seven in ten customers lie in towns of unlike sizes, with demands of 1 to 3 around a depot in
    the middle, as deliveries of a region do.
    """
    rng = np.random.default_rng(SEED)
    centers = rng.uniform(0, 10_000, (max(1, size // 100), 2))
    weights = rng.pareto(1.2, len(centers)) + 0.2
    spreads = rng.uniform(100, 900, len(centers))
    town = rng.choice(len(centers), size=size, p=weights / weights.sum())
    places = centers[town] + rng.normal(size=(size, 2)) * spreads[town][:, None]
    outside = rng.random(size) < 0.3
    places[outside] = rng.uniform(0, 10_000, (int(outside.sum()), 2))
    coords = np.vstack([[5000.0, 5000.0], np.rint(np.clip(places, 0, 10_000))])
    demands = np.array([0, *rng.choice([1, 2, 3], size=size, p=[0.5, 0.3, 0.2])])
    instance = Instance(
        "cvrp", f"towns-{size}", size, coords=coords, dist=np.rint(euclidean(coords)),
        demands=demands, capacity=capacity,
    )  # fmt: skip
    return replace(instance, reference=routes_cost(instance.dist, near_savings(instance, PAIRED)))


def alns(problem: Problem, instance: Instance, seconds: float, seed: int) -> float:
    """The cost of a run of ALNS of about `seconds`."""
    method = get_baseline("alns", problem).solve
    took = []
    for steps in (2, 12):
        began = time.process_time()
        solution = method(instance, seed, steps=steps)
        took.append(time.process_time() - began)
    each = max((took[1] - took[0]) / 10, 1e-6)
    steps = int((seconds - took[0]) / each)
    if steps > 12:
        solution = method(instance, seed, steps=steps)
    return problem.cost(instance, solution)


def measured(
    problem: Problem, instance: Instance, seconds: float, searches: int, seed: int
) -> dict[str, Callable[[], float]]:
    """What finds the cost of each method."""
    pair = shipped_pair(problem)
    paper: dict[str, Any] = {"start": "random", "acceptance": "improving", "region": 0}
    timed: dict[str, Any] = {"seconds": seconds, "clock": "cpu"}
    seeds = range(seed, seed + searches)
    first = get_baseline(CONSTRUCTIONS[problem.name], problem).solve
    return {
        "rollouts": lambda: min(
            solve(instance, pair, problem, seed=s, **timed, **paper).cost for s in seeds
        ),
        "spo solve": lambda: (
            solve(instance, pair, problem, seed=seed, workers=searches, **timed).cost
        ),
        "ALNS": lambda: min(alns(problem, instance, seconds, s) for s in seeds),
        "construction": lambda: problem.cost(instance, first(instance, 0)),
        "start": lambda: problem.cost(instance, problem.construct(instance)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="*", default=INSTANCES)
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds of each search")
    parser.add_argument("--searches", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    print(f"| gap %, {args.searches} x {args.seconds:g} CPU s | {' | '.join(args.methods)} |")
    print(f"|---|{'---|' * len(args.methods)}")
    for name in args.instances:
        problem, instance = found(name)
        if instance.reference is None:
            raise InputError(f"{name} has no reference")
        cells = []
        for method in args.methods:
            runs = [
                measured(problem, instance, args.seconds, args.searches, 10 * k)[method]()
                for k in range(args.seeds)
            ]
            cells.append(f"{100 * (sum(runs) / len(runs) / instance.reference - 1):.2f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
