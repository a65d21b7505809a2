"""What it costs to check and price solutions in one call, beside one by one.

    python experiments/bench/pricing.py [--sizes 50,100,200] [--count 1000]

Random solutions of four instances, CPU milliseconds: `Problem.costs` of all at once (the shortest
of five calls) and `Problem.decode` and `cost` of each. The first call of a shape compiles; its
seconds are in a column of their own. All costs are compared on the way.
"""

import argparse
import random
import sys
import time

import numpy as np

from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem

INSTANCES, REPEATS = 4, 5


def measured(problem: Problem, size: int, count: int) -> tuple[float, float, float]:
    """CPU seconds: of the first call, of a later one, and one by one."""
    instances = problem.sample(size, INSTANCES, 0)
    rules = [problem.rules(each) for each in instances]
    whose = np.arange(count) % INSTANCES
    codes = np.full((count, problem.code_length(instances[0])), -1, np.int32)
    for b, w in enumerate(whose):
        code = rules[w].encode(rules[w].start(random.Random(b)))
        codes[b, : len(code)] = code
    plain = [code[code >= 0].tolist() for code in codes]
    seconds = []
    for _ in range(REPEATS + 1):
        began = time.process_time()
        found = problem.costs(instances, codes, whose)
        seconds.append(time.process_time() - began)
    began = time.process_time()
    for w, code, cost in zip(whose, plain, found, strict=True):
        if problem.cost(instances[w], problem.decode(instances[w], code)) != cost:
            raise SystemExit(f"{problem.name}: a solution of {size} costs other than {cost!r}")
    return seconds[0], min(seconds[1:]), time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="50,100,200")
    parser.add_argument("--count", type=int, default=1000, help="solutions of a batch")
    args = parser.parse_args()
    began = time.process_time()
    import jax  # noqa: F401

    print(f"importing JAX: {time.process_time() - began:.2f} CPU s")
    print(f"{args.count:,} solutions, CPU ms: | one by one | in one call | ratio | first call, s")
    for name in ("tsp", "cvrp", "vrptw"):
        for size in map(int, args.sizes.split(",")):
            first, batch, single = measured(get_problem(name), size, args.count)
            print(
                f"{name:>6} {size:>4}  {1e3 * single:8.1f}  {1e3 * batch:8.2f}  "
                f"{single / batch:5.1f}  {first:6.2f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
