"""`spo solve` against OR-Tools, LKH and PyVRP where distances depend on the direction.

    python experiments/bench/directed.py [--seconds 10] [--count 3] [ATSP_FILE...]

Places are uniform in a square, and each way is longer than the straight line by 0 to 40%, drawn for
each direction. Every solver has one thread and the same CPU seconds, so that a busy machine changes
little; LKH ends by itself. With files it solves these instead.
"""

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.baselines import references as pyvrp_references
from spo_jax.envs.problems.cvrp.baselines.or_tools import fleet
from spo_jax.envs.problems.cvrp.files.cvrplib import demands_of
from spo_jax.envs.problems.or_tools import LARGEST, routed
from spo_jax.envs.problems.tsp.baselines.references import lkh
from spo_jax.envs.problems.tsp.files.weights import scaled
from spo_jax.envs.report.solve import shipped_pair, solve

SIZES = (50, 100, 200)
Solver = Callable[[Instance, float], object]


def drawn(problem: str, size: int, seed: int) -> Instance:
    """An instance of whole distances, of about 10,000 on a side."""
    rng = np.random.default_rng(seed)
    n = size + (problem == "cvrp")
    places = rng.uniform(0, 10_000, (n, 2))
    straight = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    dist = np.rint(straight * rng.uniform(1.0, 1.4, (n, n)))
    np.fill_diagonal(dist, 0.0)
    name = f"{problem}-{size}-{seed}"
    if problem == "tsp":
        return Instance("tsp", name, size, dist=dist)
    demands = np.append(0, rng.integers(1, 10, size))
    return Instance("cvrp", name, size, dist=dist, demands=demands, capacity=50)


def spo(problem: Problem) -> Solver:
    pair = shipped_pair(problem)
    return lambda instance, seconds: (
        solve(instance, pair, problem, seconds=seconds, clock="cpu", workers=1).solution
    )


def or_tools_tsp(instance: Instance, seconds: float) -> list[int]:
    [route] = routed(scaled(instance.dist, LARGEST), 1, seconds=seconds, cpu=True)
    return [0, *route]


def or_tools_cvrp(instance: Instance, seconds: float) -> list[list[int]]:
    load = demands_of(instance)
    weights = scaled(instance.dist, LARGEST)
    return routed(weights, fleet(instance), load, seconds=seconds, cpu=True)


def pyvrp(instance: Instance, seconds: float) -> list[list[int]]:
    class Clock:  # in place of wall-clock time
        monotonic = staticmethod(time.process_time)

    pyvrp_references.time = Clock  # type: ignore[assignment]
    return pyvrp_references.pyvrp(instance, seconds=seconds)


def groups(problem: Problem, files: list[str], count: int) -> Iterator[tuple[str, list[Instance]]]:
    for path in files:
        instance = problem.read(path)
        yield instance.name, [instance]
    for size in () if files else SIZES:
        yield str(size), [drawn(problem.name, size, seed) for seed in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--count", type=int, default=3)
    asked = parser.parse_args()
    tsp, cvrp = get_problem("tsp"), get_problem("cvrp")
    solvers: list[tuple[Problem, dict[str, Solver]]] = [
        (tsp, {"spo": spo(tsp), "OR-Tools": or_tools_tsp, "LKH": lambda each, seconds: lkh(each)}),
        (cvrp, {"spo": spo(cvrp), "OR-Tools": or_tools_cvrp, "PyVRP": pyvrp}),
    ]
    for problem, named in solvers[: 1 if asked.files else 2]:
        for group, instances in groups(problem, asked.files, asked.count):
            costs = {
                name: [problem.cost(each, run(each, asked.seconds)) for each in instances]
                for name, run in named.items()
            }
            least = np.min([*costs.values()], axis=0)
            gaps = (
                f"{name} {100 * np.mean(np.array(c) / least - 1):.2f}%" for name, c in costs.items()
            )
            print(f"{problem.name} {group}: {', '.join(gaps)} above the best of them", flush=True)


if __name__ == "__main__":
    main()
