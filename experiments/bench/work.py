"""How well counts of work stand for CPU seconds, and what counting costs.

    python experiments/bench/work.py [--pairs 40] [--sizes 50,200,500] [--by-function]

Random pairs of the grammar with the kit, 50 steps each, in this process: each rollout is run plain
and metered in turn, and the shortest of three of each counts. Printed for each problem and size:
units of work per microsecond at the median, the 10th and the 90th percentile of the pairs; the
correlation of their logarithms; and the median ratio of metered to plain seconds. Their solutions
are compared on the way. --by-function has the units per microsecond of each function of the kit.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from kit import CALLS  # the benchmark of the kits, beside this one

from spo_jax.envs.kits import Kit, load_kit
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.lns import Operator, OperatorPair, rollout
from spo_jax.envs.run.sandbox.acts import Loaded, define
from spo_jax.envs.run.sandbox.gate.namespace import make_rng
from spo_jax.envs.run.sandbox.gate.policy import check
from spo_jax.envs.run.sandbox.meter import Meter, metered
from spo_jax.program import ROLES, Role

STEPS, REPEATS = 50, 3


def loaded(problem: Problem, kit: Kit, role: Role, source: str, counted: bool) -> Loaded:
    verdict = check(source, role, problem.interface, kit.names)
    tree = metered(verdict.tree) if counted else verdict.tree
    code = compile(tree, f"<{role}>", "exec")
    return Loaded(code, verdict.entry, verdict.layout, False, kit if verdict.kit else None)


def timed(problem: Problem, kit: Kit, rules: Any, sources: dict[Role, str], counted: bool) -> Any:
    """(CPU seconds, units of work, best costs) of one rollout."""
    programs = {role: loaded(problem, kit, role, sources[role], counted) for role in ROLES}
    meter = Meter(kit.work or (lambda: 0)) if counted else None
    rng = make_rng(1)
    operators = [
        Operator(define(programs[role], role, rng, meter), programs[role].layout) for role in ROLES
    ]
    for each in operators:
        kit.prepare(*rules.arguments(each.layout))
    began = time.process_time()
    used = None if meter is None else lambda: 0.0 * meter.work()  # never 1, but it looks each step
    trace = rollout(
        rules, OperatorPair(operators[0], operators[1]), random.Random(1), rng, STEPS, used=used
    )
    seconds = time.process_time() - began
    return seconds, meter.work() if meter else 0, trace.best_cost


def measured(problem: Problem, kit: Kit, pairs: int, size: int) -> np.ndarray:
    """[P, 3]: plain seconds, metered seconds, units."""
    draw = random.Random(size)
    [instance] = problem.sample(size, 1, seed=size)
    rules = problem.rules(instance)
    grammars = {role: problem.grammar(role, True) for role in ROLES}
    rows = []
    for _ in range(pairs):
        sources = {r: grammars[r].render(grammars[r].sample(draw))[1] for r in ROLES}
        runs = [
            [timed(problem, kit, rules, sources, counted) for counted in (False, True)]
            for _ in range(REPEATS)
        ]
        assert all(run[0][2] == run[1][2] == runs[0][0][2] for run in runs), "costs differ"
        assert len({run[1][1] for run in runs}) == 1, "counts differ"
        rows.append([min(r[0][0] for r in runs), min(r[1][0] for r in runs), runs[0][1][1]])
    return np.array(rows, dtype=float)


def by_function(name: str, size: int) -> None:
    kit = import_module(f"spo_jax.envs.problems.{name}.kit")
    calls: dict[str, Callable[[Any, random.Random], Any]] = CALLS[name](kit, size)
    for title, call in calls.items():
        call(kit, random.Random(0))
        best, units = float("inf"), 0
        for _ in range(9):
            rng = random.Random(0)
            before, began = kit.work(), time.perf_counter()
            call(kit, rng)
            best = min(best, time.perf_counter() - began)
            units = kit.work() - before
        print(f"{name} {size:5d} {title:34s} {1e6 * best:10.1f} µs {units / best / 1e6:8.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--sizes", default="50,200,500")
    parser.add_argument("--by-function", action="store_true")
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]
    if args.by_function:
        for name in ("tsp", "cvrp"):
            for size in sizes:
                by_function(name, size)
        return 0
    print("problem  size   units per µs: median, 10th, 90th   correlation of logs   slower")
    for name in ("tsp", "cvrp"):
        problem = get_problem(name)
        kit = load_kit(problem)
        if kit is None or kit.work is None:
            sys.exit("The compiled kit is not there: pip install -e .")
        for size in sizes:
            plain, counted, units = measured(problem, kit, args.pairs, size).T
            rate = units / plain / 1e6
            low, middle, high = np.percentile(rate, (10, 50, 90))
            logs = np.corrcoef(np.log(plain), np.log(units))[0, 1]
            slower = np.median(counted / plain)
            print(f"{name:7s} {size:5d} {middle:12.0f} {low:6.0f} {high:6.0f} {logs:18.3f} "
                  f"{slower:14.3f}", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
